#!/bin/sh
# slugify.sh TITLE: prints the title as a slug.
printf '%s\n' "$1" | tr 'A-Z ' 'a-z-'
