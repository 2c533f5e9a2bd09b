"""Which dispatches are refused, and why: one table of rules for each kind of channel.

A rule is a function of the channel, the sender and the action that gives a reason, in words for
people, or None. Rules are pure: they look, and change nothing. What every channel has in common
(unknown actions, the host's own actions, the wrong channel) is judged by `actors.desk` before.
"""
