# Has zsh tell a host of terminals what it does; see ahpd.bash for the marks.

if [[ -n ${AHPD_SHELL_NONCE:-} ]]; then
    typeset -g __ahpd_nonce=$AHPD_SHELL_NONCE
    typeset -gi __ahpd_ran=0

    __ahpd_escaped() {
        emulate -L zsh
        local LC_ALL=C text=${1[1,8192]} out= char
        local -i i
        for ((i = 1; i <= $#text; i++)); do
            char=$text[i]
            case $char in
                ('\') out+='\\' ;;
                (';'|[[:cntrl:]]) out+=$(builtin printf '\\x%02x' "'$char") ;;
                (*) out+=$char ;;
            esac
        done
        REPLY=$out
    }

    __ahpd_quoted() {
        emulate -L zsh
        local LC_ALL=C text=$1 out= char
        local -i i
        for ((i = 1; i <= $#text; i++)); do
            char=$text[i]
            case $char in
                ([/._~A-Za-z0-9-]) out+=$char ;;
                (*) out+=$(builtin printf '%%%02X' $(( #char & 255 ))) ;;
            esac
        done
        REPLY=$out
    }

    __ahpd_preexec() {
        local REPLY
        __ahpd_escaped "$1"
        builtin printf '\e]633;E;%s;%s\a\e]633;C;%s\a' "$REPLY" "$__ahpd_nonce" "$__ahpd_nonce"
        __ahpd_ran=1
    }

    __ahpd_precmd() {
        local code=$? REPLY
        if ((__ahpd_ran)); then
            builtin printf '\e]633;D;%s;%s\a' "$code" "$__ahpd_nonce"
            __ahpd_ran=0
        fi
        __ahpd_quoted "$PWD"
        builtin printf '\e]7;file://%s%s\a\e]633;A;%s\a' "$HOST" "$REPLY" "$__ahpd_nonce"
    }

    # What zsh writes at the end of a line that is not over comes before precmd, and is no output.
    PROMPT_EOL_MARK="%{"$'\e]633;D;%?;'$__ahpd_nonce$'\a'"%}${PROMPT_EOL_MARK-%B%S%#%s%b}"

    autoload -Uz add-zsh-hook
    add-zsh-hook preexec __ahpd_preexec
    # First of all, so that it sees how the command ended.
    precmd_functions=(__ahpd_precmd ${precmd_functions:#__ahpd_precmd})
fi
unset AHPD_SHELL_NONCE
