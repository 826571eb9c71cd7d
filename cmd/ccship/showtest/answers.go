package showtest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// NotRead names one of everything that is not read.
func NotRead() control.NotReadFiles {
	return control.NotReadFiles{
		Stray: []string{"/r/p/x/notes.jsonl"}, NotFollowed: []string{"/r/p/a.jsonl: the target of this link does not exist"},
		Elsewhere: []control.Home{{Path: "/home/me/.claude-work/projects", Transcripts: 3}},
	}
}

// VerifyReport has every member set, as a verify that found everything there can be.
func VerifyReport() control.VerifyReport {
	return control.VerifyReport{
		SchemaVersion: 1, Incomplete: "the time limit has passed", Files: 2, Lines: 48211, Bytes: 61_200_000, Excluded: 3,
		ExcludedFiles: 2,
		Dead:          1, Withheld: 4, Oversize: 1, Masked: 6, ByServer: 7, ByPolicy: 8, ByPolicyOnly: 2, Unproven: 1,
		Clear: 2, Waiting: 5, Vanished: 1, Began: 1, Resumed: true, Unfinished: 2, NotReadFiles: NotRead(),
		Retired: RetiredServers(),
		ExcludedWhy: []control.ExclusionCount{
			{Why: "its project has opted out", Transcripts: 1, Lines: 8},
			{Why: "held back: read /s/config.json: unexpected\nend", Transcripts: 1},
			{Why: "of a type in exclude_types", Lines: 3},
		},
		Findings: []control.VerifyFinding{
			{Kind: "not_delivered", Count: 5, Text: "not everything is delivered: time is up",
				Fix: "`ccship sync --wait --timeout 10m` waits longer"},
			{Kind: "differences", Count: 1, Text: "1 difference between disk and server",
				Fix: "`ccship verify --repair` sends what the server lacks"},
			{Kind: "dead_letters", Count: 1, Text: "1 entry refused by the server (dead letters)",
				Fix: "`ccship outbox retry --all` sends them again"},
		},
		Repaired: &control.ResendResult{SchemaVersion: 1, Transcripts: 1, Lines: 4, Bytes: 99,
			Resent:  []control.ResentTranscript{{SessionID: "a", Path: "/p/a.jsonl", From: 6, Lines: 4, Generation: 2}},
			Skipped: []control.SkippedFile{{SessionID: "c", Path: "/r/c.jsonl", Why: "its project has opted out"}}},
		Attachments: control.AttachmentsReport{Files: 9, Bytes: 12_345, Missing: 1, Refused: 2, TooLarge: 3, Unproven: 4},
		Deep: &control.DeepReport{
			Past:    control.DeepCount{Generations: 3, Lines: 40, Bytes: 4000},
			Gone:    control.DeepCount{Generations: 1, Lines: 2, Bytes: 3},
			Earlier: control.DeepCount{Generations: 1, Lines: 7, Bytes: 8},
			Retired: control.DeepCount{Generations: 1, Lines: 9, Bytes: 10},
			Stored:  control.DeepCount{Generations: 2, Lines: 5, Bytes: 6},
			Why:     []control.StoredReason{{Why: "of an earlier state file", Generations: 2}},
		},
		Differences: []control.FileDifference{{
			SessionID: "a", Path: "/p/a.jsonl", Epoch: "e0", Past: true, Generation: 2,
			Missing: []control.Range{{First: 3, Last: 5}, {First: 9, Last: 9}},
			Differ:  []control.Range{{First: 1, Last: 1}}, Extra: []control.Range{{First: 12, Last: 13}},
			Detail: "the file is not what was acknowledged",
		}},
		Transcripts: []control.FileReport{
			{SessionID: "a", Path: "/p/a.jsonl", Server: "http://127.0.0.1:5000", Generation: 2, Lines: 10, Bytes: 1234,
				Clear: 2, SHA256: strings.Repeat("0a", 32), Note: "acknowledged, not proven"},
			{SessionID: "b", Path: "/q/b.jsonl", Server: "http://127.0.0.1:5000", Lines: 1, Bytes: 2,
				SHA256: strings.Repeat("0b", 32), Equal: true},
			{SessionID: "c", Path: "/r/c.jsonl", Equal: true, Note: "its project has opted out"},
			{SessionID: "d", Path: "/s/d.jsonl", Equal: true, Note: "held back: read /s/config.json: unexpected\nend"},
		},
	}
}

// RetiredServers returns one server that is no longer configured.
func RetiredServers() []control.RetiredServer {
	return []control.RetiredServer{{URL: "http://old.example.org", Batches: 2, Entries: 7}}
}

// EqualReport returns a verify that found no difference.
func EqualReport() control.VerifyReport {
	return control.VerifyReport{
		SchemaVersion: 1, Equal: true, Proven: true, Files: 1, Lines: 1, Bytes: 2,
		Transcripts: []control.FileReport{{SessionID: "b", Path: "/q/b.jsonl", Server: "http://127.0.0.1:5000", Lines: 1,
			Bytes: 2, SHA256: strings.Repeat("0b", 32), Equal: true}},
	}
}

// Checkpoint has every member set.
func Checkpoint() control.Checkpoint {
	return control.Checkpoint{
		ID: "cp-0123456789ab", SessionID: "3f2a1b9c-0000-4000-8000-000000000001", PortID: "cart", TokensUsed: 137_412,
		TokenBudget: 167_000,
		TriggerType: "auto_80", ContextHash: "00112233445566ff",
		Summary: "Title: Rounding in the cart\nPrompt: 이제 테스트도 고쳐 주세요\x1b[2J\nAnswer: All of them pass.\n" +
			"Tools: Edit 12, Read 9",
		ActiveFiles: []string{"/home/me/shop/cart.go", "/home/me/shop/\u009btax.go"}, CreatedAt: *Before(2 * time.Hour),
	}
}

// Budgets has every member and every source.
func Budgets() control.Budgets {
	return control.Budgets{SchemaVersion: 1, Budgets: []control.Budget{
		{Session: "aa", Model: "claude-haiku-4-5", Window: 200_000, Limit: 155_460, Used: 1000, Source: "learned",
			Seen: 155_460},
		{Model: "claude-sonnet-5", Window: 1_000_000, Limit: 967_000, Source: "model"},
		{Model: "claude-haiku-4-5", Window: 200_000, Limit: 155_460, Source: "learned", Seen: 155_460},
		{Model: "gateway", Window: 200_000, Limit: 167_000, Source: "default"},
		{Model: "claude-opus-4-6", Window: 1_000_000, Limit: 967_000, Source: "seen"},
		{Session: "3f2a1b9c", Model: "claude-haiku-4-5", Window: 200_000, Limit: 120_000, Used: 61_000,
			Source: "configured", Pinned: true},
		{Session: "77", Model: "gateway", Window: 200_000, Limit: 168_000, Used: 170_000, Source: "boundary"},
	}}
}

// Messages has a message of every type.
func Messages() control.Messages {
	at := time.Date(2026, 8, 20, 9, 5, 0, 0, time.UTC).UnixMilli()
	yes, no, refused := true, false, "permission denied\x1b[2J\nsecond line"
	return control.Messages{
		SchemaVersion: control.SchemaVersion, Session: "3f2a9c01-0000-4000-8000-000000000001", Title: "장바구니 반올림", Total: 15,
		UpdatedAt: at,
		Messages: []control.Message{
			{Role: "user", Type: "text", Line: 1, UUID: "u1", Timestamp: at, Content: "장바구니의 반올림을\n고쳐 주세요"},
			{Role: "assistant", Type: "text", Line: 2, UUID: "u2", Timestamp: at, Content: "I will look."},
			{Role: "assistant", Type: "tool_complete", Line: 3, Timestamp: at, ToolUseID: "t1", ToolName: "Bash",
				ToolInput: json.RawMessage(`{"description":"look","command":"ls"}`), Success: &yes, Output: "cart.go"},
			{Role: "assistant", Type: "tool_complete", Line: 4, Timestamp: at, ToolUseID: "t2", ToolName: "Edit",
				ToolInput: json.RawMessage(`{"file_path":"/cart.go"}`), Success: &no, Error: &refused},
			{Role: "assistant", Type: "tool_start", Line: 5, Timestamp: at, ToolUseID: "t3", ToolName: "Read",
				ToolInput: json.RawMessage(`{"file_path":"/b.go"}`)},
			{Role: "assistant", Type: "tool_start", Line: 6, ToolUseID: "t4", Aborted: true},
			{Role: "system", Type: "error", Line: 7, Timestamp: at, Content: "overloaded"},
			{Role: "system", Type: "result", Line: 8, Timestamp: at, Duration: 12.5, InputTokens: 1000, OutputTokens: 500,
				NewTokens: 30, CacheWrite: 270, CacheRead: 700, Interrupted: true},
			{Role: "user", Type: "interrupted", Line: 9, Timestamp: at},
			{Role: "user", Type: "command", Line: 10, Timestamp: at, Content: "/model opus"},
			{Role: "system", Type: "compaction", Line: 11, Timestamp: at, Trigger: "auto", TokensBefore: 167_000,
				TokensAfter: 9000},
			{Role: "system", Type: "cleared", Line: 12, Timestamp: at},
			{Role: "system", Type: "message", Line: 13, Timestamp: at, From: "session checkout", Content: "stop editing"},
			{Role: "user", Type: "text", Line: 14, Timestamp: at, From: "telegram", Content: "deploy"},
		},
	}
}
