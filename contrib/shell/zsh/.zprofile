ZDOTDIR=${AHPD_ZDOTDIR:-$HOME}
[[ -r $ZDOTDIR/.zprofile ]] && . "$ZDOTDIR/.zprofile"
AHPD_ZDOTDIR=$ZDOTDIR
ZDOTDIR=$__ahpd_here
