package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/internal/amount"
)

// Verify returns a verify report for people: the verdict, then every difference, then what was not compared.
func Verify(r control.VerifyReport) string {
	r = plain(r)
	var b strings.Builder
	verdict := "equal"
	if !r.Equal {
		verdict = "NOT equal"
	}
	if r.Unfinished > 0 && r.Equal {
		verdict += ", all but the unfinished last line of " + amount.Counted(int64(r.Unfinished), "file", "files")
	}
	proof := "proven by sha256"
	if !r.Proven {
		proof = "acknowledged, not proven"
	}
	fmt.Fprintf(&b, "%s: %s, %s, %s, %s", verdict, amount.Counted(int64(r.Files), "transcript", "transcripts"),
		amount.Counted(r.Lines, "line", "lines"), amount.Size(r.Bytes), proof)
	if servers := serversOf(r); len(servers) > 0 {
		b.WriteString(" on " + strings.Join(servers, ", "))
	}
	b.WriteString("\n")
	if r.Repaired != nil {
		b.WriteString("  sent again: " + resentText(*r.Repaired) + "\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %s\n    %s\n", term.OneLine(f.Text), term.OneLine(f.Fix))
	}
	for _, d := range r.Differences {
		b.WriteString(differenceText(d))
	}
	for _, t := range r.Transcripts {
		if !t.Equal && !differs(r, t) && !strings.HasPrefix(t.Note, heldBack) {
			fmt.Fprintf(&b, "\n%s  %s\n  %s\n", t.SessionID, t.Path, t.Note)
		}
	}
	if r.Deep != nil {
		b.WriteString(deepText(r.Deep))
	}
	return b.String() + apartText(r)
}

// deepText counts what lies beyond the files on disk.
func deepText(d *control.DeepReport) string {
	var b strings.Builder
	for _, c := range []struct {
		name  string
		count control.DeepCount
		words string
	}{
		{"rewound", d.Past, "that rewinds ended, proven by the hashes taken when they were read"},
		{"gone", d.Gone, "of transcripts no longer on disk, proven in the same way"},
		{"earlier", d.Earlier, "of earlier states, equal to the lines that are still on disk"},
		{"retired by policy", d.Retired, "of which the server keeps only hashes"},
		{"stored", d.Stored, "on the server that nothing here can prove"},
	} {
		if c.name == "retired by policy" && c.count.Generations == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %s: %s %s (%s, %s)\n",
			c.name, amount.Counted(int64(c.count.Generations), "generation", "generations"), c.words,
			amount.Counted(c.count.Lines, "line", "lines"), amount.Size(c.count.Bytes))
	}
	for _, r := range d.Why {
		fmt.Fprintf(&b, "    %s: %s\n", amount.Counted(int64(r.Generations), "generation", "generations"), r.Why)
	}
	return b.String()
}

// heldBack is how the note of a transcript begins that is not sent until it is known whether its project has opted
// out: the user has to fix it, so it is listed.
const heldBack = "held back"

// apartText counts what was not compared, or not whole.
func apartText(r control.VerifyReport) string {
	var b strings.Builder
	for _, apart := range []struct {
		what  string
		n     int64
		one   string
		words string
	}{
		{"not compared", r.Oversize, "line", " longer than line_cap, beyond length and sha256"},
		{"masked", r.Masked, "secret", ", compared as tokens"},
		{"masked, not proven", r.Unproven, "secret", ", too short for a token"},
		{"masked by the server", r.ByServer, "line", ", the same but for tokens"},
		{"retired by policy", r.ByPolicy, "line", ", of which the server keeps only hashes"},
		{"retired by policy, not proven", r.ByPolicyOnly, "line", " with secrets that were masked otherwise"},
		{"in clear", r.Clear, "line", " with secrets, sent before they were masked"},
	} {
		if apart.n > 0 {
			fmt.Fprintf(&b, "  %s: %s%s\n", apart.what, amount.Counted(apart.n, apart.one, apart.one+"s"), apart.words)
		}
	}
	b.WriteString(attachmentsText(r.Attachments) + RetiredServers(r.Retired))
	b.WriteString(excludedText(r.ExcludedWhy) + notReadText(&r))
	for _, t := range r.Transcripts {
		if why, held := strings.CutPrefix(t.Note, heldBack); held && !differs(r, t) {
			fmt.Fprintf(&b, "    held back: %s  %s%s\n", t.SessionID, t.Path, term.OneLine(why))
		}
	}
	if r.Vanished > 0 && r.Deep == nil {
		fmt.Fprintf(&b, "  not compared: %s no longer on disk\n",
			amount.Counted(int64(r.Vanished), "transcript", "transcripts"))
	}
	if r.Began > 0 {
		fmt.Fprintf(&b, "  began meanwhile: %s, not compared\n", amount.Counted(int64(r.Began), "transcript", "transcripts"))
	}
	return b.String()
}

// notReadText names what may be conversations and is not read.
func notReadText(n *control.VerifyReport) string {
	text := ""
	if n.Unfinished > 0 && !n.Equal {
		text += "  not sent: the unfinished last line of " + amount.Counted(int64(n.Unfinished), "file", "files") + "\n"
	}
	for _, path := range n.Stray {
		text += "  not read: " + term.OneLine(path) + ", which is no transcript by its place and name\n"
	}
	for _, why := range n.NotFollowed {
		text += "  not read: " + term.OneLine(why) + "\n"
	}
	for _, h := range n.Elsewhere {
		text += "  not read: " + amount.Counted(int64(h.Transcripts), "session", "sessions") + " in " + term.OneLine(h.Path) +
			", which is not among the roots\n"
	}
	return text
}

// excludedText counts what each rule leaves out.
func excludedText(list []control.ExclusionCount) string {
	text := ""
	for _, x := range list {
		if strings.HasPrefix(x.Why, heldBack) {
			continue // each is listed
		}
		counted := amount.Counted(int64(x.Transcripts), "transcript", "transcripts")
		if x.Transcripts == 0 {
			counted = amount.Counted(x.Lines, "line", "lines")
		}
		text += "  left out: " + counted + ", " + term.OneLine(x.Why) + "\n"
	}
	return text
}

// attachmentsText counts the attachments: files next to transcripts.
func attachmentsText(r control.AttachmentsReport) string {
	text := ""
	if r.Files > 0 {
		text += fmt.Sprintf("  attachments: %s, %s, %d missing\n", amount.Counted(int64(r.Files), "file", "files"),
			amount.Size(r.Bytes), r.Missing)
	}
	for _, apart := range []struct {
		n    int
		text string
	}{
		{r.Refused, "refused by the server (dead letters)"},
		{r.TooLarge, "larger than blob_cap"},
		{r.Unproven, "not sent: the server takes no files"},
	} {
		if apart.n > 0 {
			text += fmt.Sprintf("  not compared: %s %s\n", amount.Counted(int64(apart.n), "attachment", "attachments"),
				apart.text)
		}
	}
	return text
}

// serversOf returns each server that something was compared with, once.
func serversOf(r control.VerifyReport) []string {
	var servers []string
	for _, t := range r.Transcripts {
		if t.Server != "" && !slices.Contains(servers, t.Server) {
			servers = append(servers, t.Server)
		}
	}
	return servers
}

func differs(r control.VerifyReport, t control.FileReport) bool {
	return slices.ContainsFunc(r.Differences, func(d control.FileDifference) bool { return d.Path == t.Path })
}

// differenceText names the lines of one transcript that are not the same on both sides.
func differenceText(d control.FileDifference) string {
	generation := fmt.Sprintf("generation %d", d.Generation)
	if d.Epoch != "" {
		generation += " of the earlier state " + d.Epoch
	}
	text := fmt.Sprintf("\n%s (%s)\n  %s\n", d.SessionID, generation, d.Path)
	for _, kind := range []struct {
		ranges []control.Range
		words  string
	}{
		{d.Missing, "not on the server"}, {d.Differ, "other bytes on the server"}, {d.Extra, "on the server, not on disk"},
	} {
		if len(kind.ranges) > 0 {
			text += "  " + rangesText(kind.ranges) + ": " + kind.words + "\n"
		}
	}
	if d.Detail != "" {
		text += "  " + term.OneLine(d.Detail) + "\n"
	}
	return text
}

// maxRanges is how many ranges are spelt out: more help nobody, and --json has all of them.
const maxRanges = 20

func rangesText(ranges []control.Range) string {
	word := "line "
	if len(ranges) > 1 || ranges[0].First != ranges[0].Last {
		word = "lines "
	}
	var parts []string
	for i, r := range ranges {
		if i == maxRanges {
			parts = append(parts, fmt.Sprintf("and %d more ranges", len(ranges)-i))
			break
		}
		if r.First == r.Last {
			parts = append(parts, fmt.Sprint(amount.LineNumber(r.First)))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d", amount.LineNumber(r.First), amount.LineNumber(r.Last)))
		}
	}
	return word + strings.Join(parts, ", ")
}
