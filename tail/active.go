package tail

import (
	"context"
	"time"
)

// allInterval returns how long to wait between two listings of everything. Without events that is as short as its share
// of the time allows, and with them as long as configured.
func (t *Tailer) allInterval() time.Duration {
	if !t.polling() {
		return t.cfg.ScanAll
	}
	return min(max(idleShare*t.scan.cost, 5*t.cfg.PollInterval), t.cfg.ScanAll)
}

// idleShare limits the time that unprompted listings may take: one part in 2000.
const idleShare = 2000

// tickInterval returns how often the main loop looks what is due: being woken is most of what an idle program costs.
func (t *Tailer) tickInterval() time.Duration {
	if t.polling() {
		return min(t.cfg.ScanActive, t.cfg.PollInterval)
	}
	return t.cfg.ScanActive
}

// quickLimit returns how many quick listings of everything may follow each other. Where the last one took every folder
// as it was, on the word of the system's events, a thorough one takes its share of the time, but comes once an hour.
func (t *Tailer) quickLimit() int {
	if t.scan.looked > 0 {
		return quickRun
	}
	return min(max(quickRun, int(idleShare*t.scan.thorough/t.cfg.ScanAll)), 59)
}

// activeInterval returns how long to wait between two listings of the active folders. With events they are only a
// safety net, and are limited to their share of the time: after an import of ten thousand young files all folders are
// active.
func (t *Tailer) activeInterval() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watch.mode == "poll" {
		const share = 500
		return max(t.cfg.PollInterval, share*t.scan.activeCost)
	}
	part := float64(len(t.table.active)) / float64(max(1, len(t.table.folders)))
	guess := time.Duration(part * float64(t.scan.cost))
	return max(t.cfg.ScanActive, min(idleShare*max(guess, t.scan.activeCost), t.cfg.ScanAll))
}

// scanActive lists the folders that changed lately, and tries again those that could not be listed.
func (t *Tailer) scanActive(ctx context.Context) {
	now := t.now()
	defer func() { t.scan.activeCost = t.now() - now }()
	var folders []*folder
	t.mu.Lock()
	for d := range t.table.active {
		if now-d.touched < activeFor || t.table.unlisted[d.path] != nil {
			folders = append(folders, d)
		} else {
			delete(t.table.active, d)
		}
	}
	polling := t.watch.mode == "poll"
	for _, d := range t.table.folders {
		if polling && d.level != historyLevel && !d.ofSession() {
			folders = append(folders, d)
		}
	}
	t.mu.Unlock()
	for _, r := range t.table.roots {
		if r.history != nil {
			folders = append(folders, r.history)
		}
	}
	if len(folders) == 0 {
		return
	}
	p := t.newListing(false)
	for _, d := range folders {
		if d.listing != p.number && !d.root.alias && (t.isActive(d, now) || d.moved()) {
			p.list(ctx, d, false)
		}
	}
	p.finish(ctx)
}

func (t *Tailer) isActive(d *folder, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now-d.touched < activeFor || t.table.unlisted[d.path] != nil || d.level == historyLevel
}

// moved reports whether names were added to or removed from a folder since it was listed.
func (d *folder) moved() bool {
	st, _, err := statEntry(d.path)
	return err == nil && st != d.self && !(d.level == rootLevel && st.Inode != d.self.Inode)
}
