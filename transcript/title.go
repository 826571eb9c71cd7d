package transcript

import (
	"regexp"
	"strings"
)

var (
	placeholders = regexp.MustCompile(`\[(?:Image|Pasted text) #\d+[^\]\n]{0,40}\]`)
	headings     = regexp.MustCompile(`(?m)^[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*$`)
	fences       = regexp.MustCompile("(?m)^[ \t]{0,3}(?:```|~~~).*$")
	lineMarks    = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}|>|[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?`)
	links        = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`)
	inlineMarks  = regexp.MustCompile("\\*\\*|~~|`+")
	elementMarks = regexp.MustCompile(`</?([A-Za-z][\w-]*)(?:\s[^<>\n]*)?>`)
	everyPlans   = regexp.MustCompile(`(?i)^(?:implementation )?(?:plan|context|overview|summary|goal)$`)
	loneCommand  = regexp.MustCompile(`^/[\w:.-]+$`)
)

// titleText is how much of a text is looked at for a title, in bytes.
const titleText = 8 << 10

// PromptHeading returns a prompt as a title, on one line of at most limit characters and without markup: its own
// heading if it begins with one. It is "" for a prompt that says nothing by itself: a command alone, or only pictures.
func PromptHeading(text string, limit int) string {
	text = strings.TrimSpace(placeholders.ReplaceAllString(Cut(text, titleText), " "))
	if at := headings.FindStringSubmatchIndex(text); at != nil && at[0] == 0 {
		text = text[at[2]:at[3]]
	}
	text = strings.TrimSpace(OneLine(withoutMarkup(text), limit))
	if loneCommand.MatchString(text) || text == ImageOnly {
		return ""
	}
	return text
}

// PlanHeading returns the first heading of a plan, without markup; "" if it has none, or one that every plan could
// have.
func PlanHeading(plan string, limit int) string {
	found := headings.FindStringSubmatch(Cut(plan, titleText))
	if found == nil {
		return ""
	}
	text := strings.TrimSpace(OneLine(withoutMarkup(found[1]), limit))
	for _, word := range []string{"Implementation plan:", "Implementation Plan:", "Plan:", "Plan —", "Plan -"} {
		if rest, ok := strings.CutPrefix(text, word); ok && strings.TrimSpace(rest) != "" {
			return strings.TrimSpace(rest)
		}
	}
	if everyPlans.MatchString(text) {
		return ""
	}
	return text
}

// withoutMarkup takes the marks of Markdown and of elements that are closed out of a text.
func withoutMarkup(text string) string {
	text = fences.ReplaceAllString(text, "")
	text = lineMarks.ReplaceAllString(text, "")
	text = links.ReplaceAllString(text, "$1")
	text = inlineMarks.ReplaceAllString(text, "")
	return elementMarks.ReplaceAllStringFunc(text, func(mark string) string {
		name := elementMarks.FindStringSubmatch(mark)[1]
		if !strings.Contains(text, "</"+name+">") {
			return mark // no markup, as in Vec<String>
		}
		return " "
	})
}
