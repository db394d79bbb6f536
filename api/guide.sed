# Each line of a text as a line of a C string.
s/[\\"]/\\&/g
s/.*/"&\\n"/
