package tail

// wish is something that is asked of a file's next inspection. It counts, so that one which comes while another is
// being granted is not lost.
type wish struct{ asked, granted uint16 }

func (w *wish) ask() { w.asked++ }

// open reports whether it was asked for since it was last granted.
func (w wish) open() bool { return w.asked != w.granted }

// grant grants what was asked for by begun, a copy from when the work began.
func (w *wish) grant(begun wish) { w.granted = begun.asked }

// grantedSince reports whether what was asked for last in then, a copy, is granted by now.
func (w wish) grantedSince(then wish) bool { return int16(w.granted-then.asked) >= 0 }

// wishes are all that can be asked of an inspection.
type wishes struct {
	deep   wish // verify all bytes before the cursor
	reread wish // from line 0 in a new generation
	reload wish // another part of the daemon changed the stored cursor
	look   wish // Sync waits for an inspection that begins after its call
}

func (w wishes) open() bool {
	return w.deep.open() || w.reread.open() || w.reload.open() || w.look.open()
}
