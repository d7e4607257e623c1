# Answers in place of `steadfast` where it cannot: `answer.sh missing` while the program is missing, `answer.sh old` in a
# client that is too old to load hooks.json. One line says what to type, and one of our commands, which nothing would
# carry out, costs no model call. Every other event is let through without a word.
input=$(cat)

# Whether the command with this name is ours: the plugin's, or a file that `steadfast setup` wrote for the user.
is_ours() {
  case $1 in
    steadfast:goal-*) return 0 ;;
    goal-*[!a-z-]*) return 1 ;;
    goal-*) grep -q 'its hook did not run' "${CLAUDE_CONFIG_DIR:-$HOME/.claude}/commands/$1.md" 2>/dev/null ;;
    *) return 1 ;;
  esac
}

# Whether the client is older than 2.1.118. Clients that Node.js runs are.
is_old() {
  client=$(readlink "/proc/$PPID/exe") || return 1
  case ${client##*/} in node* | bun*) return 0 ;; esac
  version=$("$client" --version 2>/dev/null) || return 1
  case $version in
    [01].* | 2.0.*) return 0 ;;
    2.1.*) version=${version#2.1.} && [ "${version%%[!0-9]*}" -lt 118 ] ;;
    *) return 1 ;;
  esac
}

name=
case $input in
  *'"command_name":"'*) name=${input#*'"command_name":"'} ;;
  *'"prompt":"/'*) name=${input#*'"prompt":"/'} ;;
esac
name=${name%%[\" \\]*}

case $1,$input in
  missing,*'"hook_event_name":"SessionStart"'*'"source":"startup"'* | missing,*'"hook_event_name":"SessionStart"'*'"source":"resume"'*)
    form='{"systemMessage":"%s"}\n' ;;
  missing,*'"hook_event_name":"UserPromptExpansion"'*)
    is_ours "$name" && form='{"decision":"block","reason":"%s"}\n' ;;
  old,*'"hook_event_name":"UserPromptSubmit"'*)
    is_ours "$name" && is_old && form='{"decision":"block","reason":"%s"}\n' ;;
esac
case $1 in
  missing) text='steadfast: the program is missing, so no goal is driven. Install it again as you did (for example: npm install -g steadfast), then type in a terminal: steadfast setup' ;;
  *) text='steadfast: this Claude Code is too old to drive goals, which need 2.1.118 or later. In a terminal: claude update' ;;
esac
[ -z "$form" ] || printf "$form" "$text"
exit 0
