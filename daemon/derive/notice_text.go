package derive

import (
	"fmt"
	"strings"

	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/transcript/session"
)

// noticeWords are the texts of notices in one language. Their arguments are a percentage and a checkpoint's id.
type noticeWords struct {
	at80, at90 string
	compact    string // with the id alone
	document   string // the paths follow
	refused    string // the paths and reasons follow
}

// korean is a value of the option locale.
const korean = "ko"

func noticeWordsIn(locale string) noticeWords {
	refusedEnglish, refusedKorean := session.LinkRefused()
	if locale == korean {
		return noticeWords{
			at80: "💾 [ccship] 자동 체크포인트 생성됨 (토큰 사용량 %d%%)\n   체크포인트: %s\n   Compact 발생 시 이 시점으로 복구 가능",
			at90: "⚠️ [ccship] 토큰 사용량 위험 수준 (%d%%)\n   💡 현재 작업을 마무리하고 새 세션으로 분리하는 것을 권장합니다.\n" +
				"   📋 checkpoint_list 도구로 체크포인트 확인 가능 (%s)",
			compact:  "💾 [ccship] 대화가 Compact됨\n   체크포인트: %s\n   checkpoint_get 도구로 Compact 이전 작업 확인 가능",
			document: "[문서 연결됨]", refused: refusedKorean,
		}
	}
	return noticeWords{
		at80: "💾 [ccship] Automatic checkpoint made (%d%% of the token budget used)\n   Checkpoint: %s\n" +
			"   After a compaction the work can be recovered from here",
		at90: "⚠️ [ccship] Token budget nearly used up (%d%%)\n   💡 Finish the current work and continue in a new " +
			"session.\n" +
			"   📋 The checkpoint_list tool lists the checkpoints (%s)",
		compact: "💾 [ccship] The conversation was compacted\n   Checkpoint: %s\n   The checkpoint_get tool shows the " +
			"work before it",
		document: "[Document linked]", refused: refusedEnglish,
	}
}

// noticeText returns the text of notices for Claude, in order. Consecutive notices of one kind about documents become
// one.
func noticeText(locale string, list []projection.Notice) string {
	words := noticeWordsIn(locale)
	var lines []string
	kind := "" // of the notice before
	for i := range list {
		p := &list[i]
		switch head := words.heading(p.Kind); {
		case head == "":
			if text := words.checkpoint(p); text != "" {
				lines = append(lines, text)
			}
		case p.Kind != kind:
			lines = append(lines, head, documentLine(p))
		default:
			lines = append(lines, documentLine(p))
		}
		kind = p.Kind
	}
	return strings.Join(lines, "\n")
}

// heading returns the line before notices of a kind about documents; "" for other kinds.
func (w *noticeWords) heading(kind string) string {
	switch kind {
	case projection.NoticeDocument:
		return w.document
	case projection.NoticeRefused:
		return w.refused
	}
	return ""
}

// maxDocumentLine bounds the parts of a line about a document, in characters.
const maxDocumentLine = 500

// documentLine returns the line about a document. Its parts come from Claude and from file systems.
func documentLine(p *projection.Notice) string {
	line := "- " + oneLine(p.Path, maxDocumentLine)
	if p.Reason != "" {
		line += ": " + oneLine(p.Reason, maxDocumentLine)
	}
	return line
}

func (w *noticeWords) checkpoint(p *projection.Notice) string {
	switch session.Trigger(p.Kind) {
	case session.Trigger80:
		return fmt.Sprintf(w.at80, percent(p), p.Checkpoint)
	case session.Trigger90:
		return fmt.Sprintf(w.at90, percent(p), p.Checkpoint)
	case session.TriggerCompact:
		return fmt.Sprintf(w.compact, p.Checkpoint)
	}
	return ""
}

// percent returns the used part of the budget, rounded down: 79.99 % is not 80 %.
func percent(p *projection.Notice) int64 {
	if p.Budget <= 0 {
		return 0
	}
	return p.Tokens * 100 / p.Budget
}
