package transcript

import (
	"slices"
	"strings"
)

// Names of what Claude Code up to 2.1.332 writes. What is not among them is stored and shown as it is; whether its
// meaning is lost nobody knows. Most of what is here is known only by name: see Record for what is read.
var (
	// knownTypes are types of records.
	knownTypes = names(`user assistant system attachment progress
		summary custom-title ai-title last-prompt tag agent-name agent-color agent-setting mode permission-mode memory-mode
		queue-operation file-history-snapshot file-history-delta pr-link frame-link worktree-state relocated
		continued-in fork-context-ref resume-head-vouch derived-from ended-by-model session-owner
		bridge-session atis-latch isolation-latch history-suppression observer-ref dev-mods host-row repl-mode
		hybrid-organization cost-state tools-used content-replacement attribution-snapshot speculation-accept task-summary
		artifact-autoreact-ledger artifact-comment-monitor data-flow-records data-flow-incomplete
		api-request api-request-shape api-request-blob api-request-resumed
		marble-origami-commit marble-origami-snapshot marble-origami-reset`)

	// knownSystem are subtypes of system records.
	knownSystem = names(`turn_duration stop_hook_summary compact_boundary microcompact_boundary local_command api_error
		api_retry away_summary informational bridge_status scheduled_task_fire agents_killed permission_retry
		permission_denied model_fallback model_refusal_fallback model_refusal_no_fallback model_consent_fallback
		memory_saved memory_recall instruction_size_warning late_allow_not_run peer_message_hold per_turn_effort_changed
		post_turn_summary rewind_stand_in session_writes_lost task_summary turn_preempted file_snapshot
		file_attachments_missing checkpoint_done code_change_published tool_host_result voice_call_talk thinking_tokens`)

	// knownAttachments are types of attachments.
	knownAttachments = names(`queued_command file already_read_file directory compact_file_reference pdf_reference
		edited_text_file opened_file_in_ide selected_lines_in_ide diagnostics nested_memory relevant_memories
		account_memory_recall cowork_memory_context mcp_resource mcp_instructions_delta repl_mcp_needs_auth
		todo todo_reminder task_reminder task_status batching_reminder batching_reminder_sent progress_reminder_sent
		secondary_reminder secondary_reminder_sent critical_system_reminder silent_turn_reminder total_tokens_reminder
		token_usage output_token_usage budget_usd output_limit_note max_turns_reached tool_results_cut too_large
		too_many_attachments message_pdf_reads read_truncation_notice inlined_image_paths thinking_stripped
		hook_success hook_non_blocking_error hook_blocking_error hook_cancelled hook_system_message
		hook_additional_context hook_deferred_tool hook_error_during_execution hook_permission_decision
		hook_stopped_continuation async_hook_response
		plan_mode plan_mode_reentry plan_mode_exit plan_file_reference auto_mode auto_mode_exit command_permissions
		ultra_effort_enter ultra_effort_exit output_style output_style_instructions language date date_change first_week
		environment model session_context instructions sandbox_instructions context_sections prompt_snapshot
		prompt_as_file prompt_render_point structured_output companion_intro goal_status remote_session_change
		skill_listing invoked_skills dynamic_skill agent_listing_delta agent_mention at_mention_reference peer_mention
		deferred_tools_delta deferred_tools_record advisor_tool advisor_stripped tool_offer_record tool_hosts_notice
		tool_host_result_lines workflow_size_guideline_change poll_events session_cron_carry
		team_context teammate_mailbox coordinator_context agent_ask_notice projects_thread_ask fork_briefing
		claude_app_notice dir_sync_notice plugin_note project_doc_reads artifact_opening_prefetch`)

	// knownBlocks are types of a message's blocks.
	knownBlocks = names(`text thinking redacted_thinking image document tool_use server_tool_use mcp_tool_use tool_result
		mcp_tool_result web_search_tool_result web_fetch_tool_result code_execution_tool_result
		bash_code_execution_tool_result text_editor_code_execution_tool_result tool_search_tool_result
		advisor_tool_result container_upload search_result tool_reference fallback compaction`)

	// knownMembers are members of user, assistant, system, attachment and progress records.
	knownMembers = names(`type subtype uuid parentUuid logicalParentUuid isSidechain sessionId session_id agentId timestamp
		cwd gitBranch version userType entrypoint slug teamName agentName promptId forkedFrom sessionKind requestSessionId
		message requestId isMeta isCompactSummary isVisibleInTranscriptOnly isVirtual isApiErrorMessage apiErrorStatus error
		errorDetails permissionMode promptSource origin turnOrigin turnPosition turnCompanion sentAtMs rowSource
		queueSkipAttachments queuePriority scheduledTaskId scheduledFireId wakeupSource imagePasteIds planContent todos
		thinkingMetadata interruptedMessageId textNotTyped promptRewritten handedOff persist classifierMetaLines
		toolUseResult sourceToolAssistantUUID sourceToolUseID toolDenialKind toolEndsTurn permissionDecision sandboxed
		mcpMeta summarizeMetadata
		effort perTurnEffort perTurnTiming advisorModel requestedModel requestRef promptCacheRequested madeBy apiBlockIndex
		toolInputStreamMs wireToolInputs isAbortedMidStream attributionAgent attributionSkill attributionPlugin
		attributionMcpServer attributionMcpTool
		content level durationMs messageCount budgetTokens pendingBackgroundAgentCount pendingWorkflowCount
		hookCount hookInfos hookErrors hookAdditionalContext preventedContinuation stopReason hasOutput toolUseID
		parentToolUseID compactMetadata microcompactMetadata cause retryInMs retryAttempt maxRetries url upgradeNudge
		taskId cron prompt foldedUuids noOpStreak streakStartedAt commandRun summary originalModel fallbackModel
		writtenPaths data attachment rendered renderedRole renderedBesideToolResult`)
)

// names returns a set of names.
func names(list string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		set[name] = true
	}
	return set
}

// Unknown names what a line has that this program does not know, each once: "type x", "system x", "attachment x",
// "block x" and "member x". The line must be one that Scan called an Object.
func Unknown(line []byte) (out []string) {
	r := Parse(line)
	check := func(set map[string]bool, what, name string) {
		if s := what + " " + OneLine(name, 60); !set[name] && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if check(knownTypes, "type", r.Type); len(out) > 0 {
		return out
	}
	switch r.Type {
	case "system":
		check(knownSystem, "system", r.Subtype)
	case "attachment":
		check(knownAttachments, "attachment", r.Subtype)
	case "user", "assistant", "progress":
	default:
		return nil
	}
	if r.Message != nil {
		for i := range r.Message.blocks {
			if b := &r.Message.blocks[i]; len(b.Type) > 0 {
				check(knownBlocks, "block", Unquote(b.Type))
			}
		}
	}
	w := walker{line, skipSpace(line, 0) + 1}
	for key, _, ok := w.member(); ok; key, _, ok = w.member() {
		check(knownMembers, "member", Unquote(key))
	}
	return out
}
