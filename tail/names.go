package tail

import (
	"path/filepath"
	"strings"
)

// level is the kind of a folder, which decides what it may contain.
type level uint8

const (
	rootLevel    level = iota // holds project folders
	projectLevel              // holds main transcripts, older agents' transcripts and session folders
	sessionLevel              // below a project folder: a session's, or one into which a user moved transcripts
	agentsLevel               // subagents and all folders below it: holds agents' transcripts
	historyLevel              // the folder of a history.jsonl: of interest only for that file
)

const (
	suffix      = ".jsonl"
	agentPrefix = "agent-"
	agentsName  = "subagents"
	journalName = "journal.jsonl" // what a workflow's agents were asked: each agent's transcript repeats it
	maxDepth    = 12              // folders below a root
)

// stemOf returns the name of a *.jsonl file without its suffix. Temporary files of Claude Code's garbage collection
// (<id>.jsonl.compact.tmp.<hex>) and hidden files are none.
func stemOf(name string) (stem string, ok bool) {
	stem, ok = strings.CutSuffix(name, suffix)
	return stem, ok && stem != "" && stem[0] != '.' && !strings.Contains(stem, ".compact.tmp.")
}

// transcript returns which transcript a file of this name in the folder is, if it is one. Directly in a project folder
// every *.jsonl file is a session's; elsewhere only one that is named like a session.
func (d *folder) transcript(name string) (kind Kind, called string, ok bool) {
	stem, ok := stemOf(name)
	agent := strings.HasPrefix(stem, agentPrefix)
	switch {
	case !ok:
	case d.level == historyLevel:
		return History, stem, name == d.history
	case agent && d.level == agentsLevel:
		return Agent, d.session + "/" + stem, true
	case agent:
		return Agent, stem, true
	case d.level == projectLevel || namesSession(stem):
		return Main, stem, true
	}
	return 0, "", false
}

// stray reports whether a file of this name in the folder may hold lines although it is no transcript.
func (d *folder) stray(name string) bool {
	_, jsonl := stemOf(strings.ToLower(name))
	_, _, is := d.transcript(name)
	return jsonl && !is && d.level != historyLevel && (d.level != agentsLevel || name != journalName)
}

// namesSession reports whether a name begins with a UUID, as those of sessions and of their copies do.
func namesSession(stem string) bool {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(stem) < len(form) {
		return false
	}
	for i := range form {
		hex := strings.IndexByte("0123456789abcdefABCDEF", stem[i]) >= 0
		if form[i] == 'x' && !hex || form[i] != 'x' && stem[i] != form[i] {
			return false
		}
	}
	return true
}

// below returns the level of a subfolder of this name, if it is of interest: it may hold transcripts. The name may
// still be a file's, so it refuses names that look like those of the files next to transcripts. tool-results holds
// output of tools, which is delivered as attachments.
func (d *folder) below(name string) (l level, ok bool) {
	switch ext := filepath.Ext(name); {
	case d.level == historyLevel, name == ".git", ext == ".json", ext == ".txt", ext == ".md":
		return 0, false
	case d.level == rootLevel:
		return projectLevel, true
	case d.level == projectLevel:
		return sessionLevel, true
	case d.level == sessionLevel && name != agentsName:
		return sessionLevel, name != "tool-results"
	}
	return agentsLevel, true
}

// wants reports whether a name in the folder is worth a question to the file system.
func (d *folder) wants(name string) bool {
	if d.level == historyLevel {
		return name == d.history
	}
	_, ok := d.below(name)
	return ok
}

// key returns what the file is looked up by when it turns up elsewhere. Every prompt history has the same Name and
// stays where it is, so its path is its key.
func (f *File) key() string {
	if f.Kind == History {
		return f.Path
	}
	return f.Name
}
