#!/bin/sh
# slugify.sh TITLE: prints the title as a slug.
slug=$(printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-')
printf '%s\n' "$slug"
