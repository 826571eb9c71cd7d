package state

import "testing"

// TestRoomInsideTheFile goes on when a backlog that filled the disk has drained: the disk stays full, the file is empty.
func TestRoomInsideTheFile(t *testing.T) {
	const head = 100 << 10
	free := uint64(1 << 40)
	db := open(t, Options{HeadRoom: head, FreeDisk: func(string) (uint64, uint64, error) { return free, 1 << 40, nil }})
	var seqs []uint64
	for i := range int64(40) {
		seqs = append(seqs, commit(t, db, advance(1, i, i+1, 100<<10))...)
	}
	free = head / 2
	db.room.asked = db.room.asked.Add(-diskEvery)
	if db.Room(true) || db.Usage().Full != "disk" {
		t.Error("there is room on a full disk, and a full file")
	}
	settle(t, db, 1, seqs...)
	db.room.asked = db.room.asked.Add(-diskEvery)
	if !db.Room(true) {
		t.Errorf("no room, though %d bytes of the file are empty", db.file.Empty())
	}
}
