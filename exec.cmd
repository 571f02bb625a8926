@rem The shell of Windows has no exec: it finds this file when npm runs a script.
@%*
