# Has fish tell a host of terminals what it does; see ahpd.bash for the marks.

if set -q AHPD_SHELL_NONCE
    set -g __ahpd_nonce $AHPD_SHELL_NONCE
    set -g __ahpd_ran 0

    function __ahpd_preexec --on-event fish_preexec
        set -l line (string sub -l 8192 -- "$argv[1]" | string collect)
        set line (string replace -a '\\' '\\\\' -- "$line" | string replace -a ';' '\\x3b' | string join '\\x0a')
        set line (string replace -a \e '\\x1b' -- "$line" | string replace -a \a '\\x07' | string replace -a \r '\\x0d' | string collect)
        printf '\e]633;E;%s;%s\a\e]633;C;%s\a' "$line" $__ahpd_nonce $__ahpd_nonce
        set -g __ahpd_ran 1
    end

    function __ahpd_postexec --on-event fish_postexec
        set -l code $status
        if test $__ahpd_ran = 1
            printf '\e]633;D;%s;%s\a' $code $__ahpd_nonce
            set -g __ahpd_ran 0
        end
    end

    function __ahpd_prompt --on-event fish_prompt
        printf '\e]7;file://%s%s\a\e]633;A;%s\a' (hostname) (string escape --style=url -- $PWD) $__ahpd_nonce
    end
end
set -e AHPD_SHELL_NONCE
