package tail

import "strings"

// level is the kind of a folder, which decides what it may contain.
type level uint8

const (
	rootLevel    level = iota // holds project folders
	projectLevel              // holds main transcripts, older agents' transcripts and session folders
	sessionLevel              // of interest only for its subagents folder
	agentsLevel               // subagents and all folders below it: holds agents' transcripts
	historyLevel              // the folder of a history.jsonl: of interest only for that file
)

const (
	suffix      = ".jsonl"
	agentPrefix = "agent-"
	agentsName  = "subagents"
	maxDepth    = 12 // folders below a root; deeper files are not transcripts
)

// transcript returns which transcript a file of this name in the folder is, if it is one. Temporary files of Claude
// Code's garbage collection (<id>.jsonl.compact.tmp.<hex>), workflow journals and hidden files are not transcripts.
func (d *folder) transcript(name string) (kind Kind, called string, ok bool) {
	stem, ok := strings.CutSuffix(name, suffix)
	if !ok || stem == "" || stem[0] == '.' || strings.Contains(stem, ".compact.tmp.") {
		return 0, "", false
	}
	switch d.level {
	case projectLevel:
		if strings.HasPrefix(stem, agentPrefix) {
			return Agent, stem, true
		}
		return Main, stem, true
	case agentsLevel:
		if strings.HasPrefix(stem, agentPrefix) {
			return Agent, d.session + "/" + stem, true
		}
	case historyLevel:
		if name == d.history {
			return History, "history", true
		}
	}
	return 0, "", false
}

// below returns the level of a subfolder of this name, if it is of interest. The name may still be a file's, so it
// refuses names that look like a file's.
func (d *folder) below(name string) (l level, ok bool) {
	if d.depth >= maxDepth {
		return 0, false
	}
	switch d.level {
	case rootLevel:
		return projectLevel, !strings.HasSuffix(name, suffix)
	case projectLevel:
		return sessionLevel, !strings.Contains(name, ".")
	case sessionLevel:
		return agentsLevel, name == agentsName
	case agentsLevel:
		return agentsLevel, !strings.HasSuffix(name, suffix) && !strings.HasSuffix(name, ".json")
	}
	return 0, false
}

// wants reports whether a name in the folder is worth a question to the file system.
func (d *folder) wants(name string) bool {
	if _, ok := d.below(name); ok {
		return true
	}
	_, _, ok := d.transcript(name)
	return ok
}

// key is what the file is looked up by when it turns up elsewhere. Every prompt history has the same Name and stays
// where it is, so its path is its key.
func (f *File) key() string {
	if f.Kind == History {
		return f.Path
	}
	return f.Name
}
