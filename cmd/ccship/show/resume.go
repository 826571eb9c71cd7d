package show

import (
	"cmp"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/internal/amount"
)

// Resumed says in lines what was brought to this machine.
func Resumed(r library.Resumed) []string {
	r = plain(r)
	var written, bytes int64
	for _, f := range r.Files {
		if !f.Same {
			written++
			bytes += f.Bytes
		}
	}
	out := []string{"session " + r.Session + " of " + cmp.Or(r.Host, r.Machine) + " is complete on this disk already"}
	if written > 0 {
		out = []string{"session " + r.Session + " of " + cmp.Or(r.Host, r.Machine) + ": " +
			amount.Counted(written, "file", "files") + ", " + amount.Size(bytes) + " written"}
	}
	if r.From != "" && r.From != r.Folder {
		out = append(out, r.From+" is "+r.Folder+" here")
	}
	for _, f := range r.Files {
		if f.Aside != "" {
			out = append(out, "the file of before is "+f.Aside)
		}
	}
	if r.Masked > 0 {
		out = append(out, amount.Counted(r.Masked, "secret is", "secrets are")+
			" masked: Claude will see tokens in their place")
	}
	return out
}

// ResumeCommand returns the command line that resumes a session in a folder.
func ResumeCommand(folder, session string) string {
	return "cd " + term.Quote(folder) + " && claude --resume " + term.Quote(session)
}
