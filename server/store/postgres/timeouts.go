package postgres

import (
	"fmt"
	"time"
)

// class is a kind of work with its time limits: how long a statement may run, and how long it may wait for a lock.
type class struct{ statement, lock time.Duration }

// The classes. What a person waits for ends before the person has left; what repeats by itself may take longer, but
// holds nothing up for long. Searches, sums and lists have a shorter limit yet, in package limit.
var (
	// classPage is every read that is not one of the others. It takes no locks but those of reading.
	classPage = class{30 * time.Second, 5 * time.Second}
	// classIngest is what daemons send: a transaction is tried again for as long as a daemon waits for its answer.
	classIngest = class{60 * time.Second, 20 * time.Second}
	// classBackground is deriving, forgetting and masking. They lock a stream's row as ingest does, and give up sooner.
	classBackground = class{5 * time.Minute, 5 * time.Second}
	// classBarrier takes a lock that all storing meets, for one small write: what waits for the lock holds others up.
	classBarrier = class{5 * time.Second, time.Second}
)

// set returns the statements that give a connection (SET) or a transaction (SET LOCAL) the limits.
func (c class) set(how string) string {
	return fmt.Sprintf(`%s statement_timeout = %d; %s lock_timeout = %d`,
		how, c.statement.Milliseconds(), how, c.lock.Milliseconds())
}
