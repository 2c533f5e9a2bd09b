# The last file of ours: from here on zsh is where it would be without us.
ZDOTDIR=${AHPD_ZDOTDIR:-$HOME}
[[ -r $ZDOTDIR/.zshrc ]] && . "$ZDOTDIR/.zshrc"
. "$__ahpd_here/../ahpd.zsh"
unset __ahpd_here AHPD_ZDOTDIR
[[ $ZDOTDIR == "$HOME" ]] && unset ZDOTDIR
