# Has bash tell a host of terminals what it does: which command runs, how it ended, where it is.
#
# Read in place of ~/.bashrc (bash --init-file), which is read first. Sends OSC 633 marks E, C, D
# and A with a nonce that only this shell knows, and OSC 7 with the folder.

[ -r ~/.bashrc ] && . ~/.bashrc

# PS0 came with 4.4: without it there is no telling when a command begins.
if [ -n "${AHPD_SHELL_NONCE:-}" ] &&
    { [ "${BASH_VERSINFO[0]}" -gt 4 ] || { [ "${BASH_VERSINFO[0]}" -eq 4 ] && [ "${BASH_VERSINFO[1]}" -ge 4 ]; }; }; then

    __ahpd_nonce=$AHPD_SHELL_NONCE
    __ahpd_ran=0
    __ahpd_void=
    __ahpd_past=

    # Backslashes, what ends a field, and control characters, as \xNN.
    __ahpd_escaped() {
        local LC_ALL=C text=$1 out= char i
        text=${text:0:8192}
        case $text in
            *[\;\\[:cntrl:]]*)
                for ((i = 0; i < ${#text}; i++)); do
                    char=${text:i:1}
                    case $char in
                        \\) out+='\\' ;;
                        [\;[:cntrl:]]) printf -v char '\\x%02x' "'$char"; out+=$char ;;
                        *) out+=$char ;;
                    esac
                done
                ;;
            *) out=$text ;;
        esac
        __ahpd_result=$out
    }

    __ahpd_quoted() {
        local LC_ALL=C text=$1 out= char i
        case $text in
            *[!/._~A-Za-z0-9-]*)
                for ((i = 0; i < ${#text}; i++)); do
                    char=${text:i:1}
                    case $char in
                        [/._~A-Za-z0-9-]) out+=$char ;;
                        *) printf -v char '%d' "'$char"; printf -v char '%%%02X' $((char & 255)); out+=$char ;;
                    esac
                done
                ;;
            *) out=$text ;;
        esac
        __ahpd_result=$out
    }

    # In a subshell, from PS0. What history does not take (a line that begins with a space, or is
    # the same as the last) cannot be told from the last one: then no line is told.
    __ahpd_began() {
        local line
        line=$(HISTTIMEFORMAT='' builtin history 1 2>/dev/null)
        if [ "$line" = "$__ahpd_past" ]; then
            line=
        fi
        if [[ $line =~ ^[[:space:]]*[0-9]+\*?[[:space:]]+(.*) ]]; then
            line=${BASH_REMATCH[1]}
        fi
        __ahpd_escaped "$line"
        builtin printf '\e]633;E;%s;%s\a\e]633;C;%s\a' "$__ahpd_result" "$__ahpd_nonce" "$__ahpd_nonce"
    }

    __ahpd_prompt() {
        local status=$?
        if [ "$__ahpd_ran" = 1 ]; then
            builtin printf '\e]633;D;%s;%s\a' "$status" "$__ahpd_nonce"
            __ahpd_ran=0
        fi
        __ahpd_past=$(HISTTIMEFORMAT='' builtin history 1 2>/dev/null)
        case ${PS0-} in
            *__ahpd_began*) ;;
            *) PS0=$__ahpd_ps0${PS0-} ;;  # somebody set it, or read ~/.bashrc again
        esac
        __ahpd_quoted "$PWD"
        builtin printf '\e]7;file://%s%s\a\e]633;A;%s\a' "$HOSTNAME" "$__ahpd_result" "$__ahpd_nonce"
        return "$status"
    }

    # The assignment is made in this shell, the rest in a subshell of it.
    __ahpd_ps0='${__ahpd_void:$((__ahpd_ran = 1)):0}$(__ahpd_began)'
    PS0=$__ahpd_ps0${PS0-}
    # First of all, so that it sees how the command ended.
    if [[ "$(declare -p PROMPT_COMMAND 2>/dev/null)" == "declare -a"* ]]; then
        PROMPT_COMMAND=(__ahpd_prompt "${PROMPT_COMMAND[@]}")
    else
        PROMPT_COMMAND="__ahpd_prompt${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
    fi
fi
unset AHPD_SHELL_NONCE
