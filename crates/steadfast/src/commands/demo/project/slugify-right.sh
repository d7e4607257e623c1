#!/bin/sh
# slugify.sh TITLE: prints the title as a slug, with no dash at either end.
slug=$(printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -cs 'a-z0-9' '-')
slug=${slug#-}
printf '%s\n' "${slug%-}"
