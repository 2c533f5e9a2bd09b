# ZDOTDIR names this folder, so that zsh comes here first; the person's own files are read in turn.
__ahpd_here=$ZDOTDIR
ZDOTDIR=${AHPD_ZDOTDIR:-$HOME}
[[ -r $ZDOTDIR/.zshenv ]] && . "$ZDOTDIR/.zshenv"
AHPD_ZDOTDIR=$ZDOTDIR
ZDOTDIR=$__ahpd_here
