# Answers for `steadfast` while that program is missing: one line at the start of a session, and no model call for one of
# our commands, which nothing would carry out. Every other event is let through without a word.
input=$(cat)
text='steadfast: the program is missing, so no goal is driven. In a terminal: npm install -g steadfast && steadfast setup'

# Whether the command of this event is ours: the plugin's, or a file that `steadfast setup` wrote for the user.
is_ours() {
  name=${input#*'"command_name":"'}
  name=${name%%'"'*}
  case $name in
    steadfast:goal-*) return 0 ;;
    goal-*[!a-z-]* | [!g]*) return 1 ;;
    goal-*) grep -q 'its hook did not run' "${CLAUDE_CONFIG_DIR:-$HOME/.claude}/commands/$name.md" 2>/dev/null ;;
    *) return 1 ;;
  esac
}

case $input in
  *'"hook_event_name":"SessionStart"'*)
    case $input in
      *'"source":"startup"'* | *'"source":"resume"'*) printf '{"systemMessage":"%s"}\n' "$text" ;;
    esac
    ;;
  *'"hook_event_name":"UserPromptExpansion"'*)
    if is_ours; then printf '{"decision":"block","reason":"%s"}\n' "$text"; fi
    ;;
esac
exit 0
