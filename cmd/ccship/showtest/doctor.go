package showtest

import "github.com/ccship/ccship/daemon/doctor"

// DoctorReports returns what a doctor may say: no problems, a warning, failures, and after fixing.
func DoctorReports() map[string]doctor.Report {
	well := []doctor.Finding{
		{ID: "daemon", Level: doctor.OK, Text: "running for 3 d 2 h (pid 4711)"},
		{ID: "version", Level: doctor.OK, Text: "daemon and command line are 1.2.3"},
		{ID: "service", Level: doctor.OK, Text: "installed (systemd-user), starts automatically"},
		{ID: "dead_letters", Level: doctor.OK, Text: "none"},
	}
	note := doctor.Finding{ID: "excluded", Level: doctor.Note,
		Text: "2 transcripts are left out: excluded, forgotten, or opted out by their projects",
		Fix:  "`ccship exclude` shows why"}
	warn := doctor.Finding{
		ID: "outbox", Level: doctor.Warn, Text: "1 204 entries wait, the oldest for 3 h 12 min",
		Fix: "`ccship sync --wait`", Safe: true,
	}
	fails := []doctor.Finding{
		{ID: "key", Level: doctor.Fail, Text: "API key file /home/kim/.config/ccship/api_key is readable or writable by " +
			"others (mode 0644)", Detail: "the key is not used until this is fixed",
			Fix: "`chmod 600 /home/kim/.config/ccship/api_key`", Safe: true},
		{ID: "retention", Level: doctor.Fail,
			Text:   "3 sessions will be deleted by Claude Code within 7 days and are not yet on the server",
			Detail: "first any time now: /home/kim/.claude/projects/-home-kim-web/1c0e.jsonl\nand more",
			Fix:    "`ccship sync --wait`"},
	}
	fixes := []doctor.Fix{
		{ID: "key", Command: "chmod 600 /home/kim/.config/ccship/api_key", Done: true},
		{ID: "outbox", Command: "ccship sync --wait", Error: "not everything could be delivered: connection refused",
			Hint: "`ccship status` shows why; the daemon keeps trying"},
	}
	all := func(parts ...[]doctor.Finding) (out []doctor.Finding) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	report := func(failed, warned int, findings []doctor.Finding) doctor.Report {
		return doctor.Report{SchemaVersion: 1, Version: "1.2.3", OK: failed == 0, Failed: failed, Warned: warned,
			Findings: findings}
	}
	fixed := report(1, 1, all(fails[1:], []doctor.Finding{warn, note}, well))
	fixed.Fixes = fixes
	return map[string]doctor.Report{
		"well":   report(0, 0, all([]doctor.Finding{note}, well)),
		"warned": report(0, 1, all([]doctor.Finding{warn}, well)),
		"broken": report(2, 1, all(fails, []doctor.Finding{warn, note}, well)),
		"fixed":  fixed,
	}
}
