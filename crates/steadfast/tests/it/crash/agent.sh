#!/bin/sh
# The agent of the crash tests. What it leaves behind depends on its iteration alone, however often it is run: a line in
# the work file, a result, and its input as output. It tells when two of it work on the same iteration. Whatever matters
# is done by the shell itself: a helper program that is killed a moment before the shell would be taken for an answer.
set -u
book=${0%/*}/book
id=$STEADFAST_STAGE-$STEADFAST_ITERATION
exec 9>>"$book/$id.lock"
flock -n 9
[ $? -ne 1 ] || echo "$id" >>"$book/doubled"
echo "start $id" >>"$book/log"

IFS= read -r output || output=
case $id in
*-2) # Fails once.
  if mkdir "$book/$id.failed" 2>/dev/null; then
    echo "connection reset by peer" >&2
    exit 1
  fi
  ;;
fixed-3 | plateau-3) # Prints a lot.
  head -c 200000 /dev/zero | tr '\0' 'x'
  ;;
esac

file=work.txt
case $id in
side-*) # The checkout stays as it was committed, so that branches can be merged there.
  file=side.txt
  : >>$file
  ;;
gather-*)
  if [ -e .gitignore ]; then
    mkdir -p out
    echo "notes of $id on $STEADFAST_MATRIX_PART by the ${1:-first}" >out/notes
  fi
  ;;
merge-*) # Keeps both sides of the conflict. An agent that was killed may have left its lock.
  rm -f "$(git rev-parse --git-path index.lock)"
  # An agent that was killed may have written a part of the file.
  git checkout -q --merge -- work.txt
  both=
  while IFS= read -r line; do
    case $line in '<<<<<<< '* | '=======' | '>>>>>>> '*) ;; *) both="$both$line
" ;; esac
  done <work.txt
  printf '%s' "$both" >work.txt
  git add work.txt && git commit -q --no-edit
  # The same as the engine says if it finds the merge done.
  echo 'merged 2 branches: steadfast/r/1-2, steadfast/r/1-1'
  echo '{"summary": "merged 2 branches"}' >"$STEADFAST_RESULT"
  echo "end $id" >>"$book/log"
  exit 0
  ;;
esac

here=no
while IFS= read -r line; do
  [ "$line" != "$id" ] || here=yes
done 2>/dev/null <$file
[ $here = yes ] || echo "$id" >>$file
sleep 0.005

said=
while IFS= read -r line; do
  said="$said$line
"
done
# Some write their output themselves, some only say it.
case $id in
build-1) printf '%s' "$said" >"$output" ;;
*) printf '%s' "$said" ;;
esac
[ "$STEADFAST_ITERATION" -ge 3 ] && plateau=true || plateau=false
# The branches are for a merge: the second one first.
echo "{\"summary\": \"did $id\", \"plateau\": $plateau, \"reasoning\": \"as told\", \"branches\": [2, 1]}" >"$STEADFAST_RESULT"
echo "end $id" >>"$book/log"
