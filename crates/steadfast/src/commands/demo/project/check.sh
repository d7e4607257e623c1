#!/bin/sh
# Titles, and the slugs they must become.
failed=0
check() {
    got=$(sh slugify.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok   '$1': '$got'"
    else
        echo "FAIL '$1': '$got', not '$2'"
        failed=1
    fi
}
check 'Hello World' 'hello-world'
check 'already-a-slug' 'already-a-slug'
check 'Tabs	and  spaces' 'tabs-and-spaces'
check '100% done?' '100-done'
exit $failed
