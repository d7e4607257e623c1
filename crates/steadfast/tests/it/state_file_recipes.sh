# The recipes of the documentation of the state files, word for word. A line `#: NAME` begins one;
# `documented_files.rs` runs them with the real bash and jq against files that our code wrote.

#: Read current state
cat .claude/loop-sessions.json | jq '.'

#: Add a new session
jq --arg name "loop-myfeature" \
   --arg type "loop" \
   --arg loop_type "work" \
   --arg started "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
   --arg path "$(pwd)" \
   --argjson max 50 \
   '.sessions[$name] = {
     type: $type,
     loop_type: $loop_type,
     started_at: $started,
     project_path: $path,
     max_iterations: $max,
     status: "running"
   }' .claude/loop-sessions.json > tmp && mv tmp .claude/loop-sessions.json

#: Update status
jq --arg name "loop-myfeature" \
   --arg status "killed" \
   --arg killed "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
   '.sessions[$name].status = $status |
    .sessions[$name].killed_at = $killed' \
   .claude/loop-sessions.json > tmp && mv tmp .claude/loop-sessions.json

#: List running sessions
jq -r '.sessions | to_entries[] | select(.value.status == "running") | .key' .claude/loop-sessions.json

#: Remove a session entry
jq --arg name "loop-myfeature" 'del(.sessions[$name])' .claude/loop-sessions.json > tmp && mv tmp .claude/loop-sessions.json

#: Reading Loop State
# Current status
cat .claude/loop-state-myfeature.json | jq '.status'

# Current iteration
cat .claude/loop-state-myfeature.json | jq '.iteration'

# Check if complete
cat .claude/loop-state-myfeature.json | jq 'if .status == "completed" then "done" else "running" end'

# Get completion reason
cat .claude/loop-state-myfeature.json | jq '.reason'

#: Reading Pipeline State
# Current stage
cat .claude/pipeline-runs/myrefine/state.json | jq '.current_stage'

# Stage names and status
cat .claude/pipeline-runs/myrefine/state.json | jq '.stages[] | {name, status}'

# Check if complete
cat .claude/pipeline-runs/myrefine/state.json | jq '.status'

#: Reading Progress
# Full progress file
cat .claude/loop-progress/progress-myfeature.txt

# Just the learnings (everything after first ---)
awk '/^---$/{found=1; next} found' .claude/loop-progress/progress-myfeature.txt

#: Remove completed entries older than 7 days
CUTOFF=$(date -v-7d +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -d "7 days ago" +%Y-%m-%dT%H:%M:%SZ)

jq --arg cutoff "$CUTOFF" '
  .sessions |= with_entries(
    select(
      .value.status == "running" or
      (.value.completed_at // .value.killed_at // .value.started_at) > $cutoff
    )
  )
' .claude/loop-sessions.json > tmp && mv tmp .claude/loop-sessions.json

#: Remove all killed/completed entries
jq '.sessions |= with_entries(select(.value.status == "running"))' \
  .claude/loop-sessions.json > tmp && mv tmp .claude/loop-sessions.json

#: Find orphaned state files (no matching session)
for f in .claude/loop-state-*.json; do
  session=$(basename "$f" | sed 's/loop-state-//; s/.json//')
  if ! jq -e ".sessions[\"loop-$session\"]" .claude/loop-sessions.json >/dev/null 2>&1; then
    echo "Orphaned: $f"
  fi
done
