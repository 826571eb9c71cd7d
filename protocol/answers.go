package protocol

import "time"

// Hit is a line that a search found.
type Hit struct {
	SessionID  string     `json:"session_id"` // an agent's, perhaps
	Generation int64      `json:"generation"`
	Line       int64      `json:"line_index"`
	Time       *time.Time `json:"time"`
	Kind       string     `json:"kind"` // as server.TextKinds and server.PlaceKinds name it
	Snippet    []Piece    `json:"snippet"`
	Current    bool       `json:"current"` // the newest view shows it
	URL        string     `json:"url"`
}

// Piece is a part of a snippet. Match says that it is what was searched for.
type Piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match"`
}

// ShareLink is an address that shows one session to anyone with it.
type ShareLink struct {
	ID        int64     `json:"id"`
	URL       string    `json:"url,omitempty"` // only when it is made
	SessionID string    `json:"session_id"`
	Title     string    `json:"title"`
	By        string    `json:"by"` // user
	Created   time.Time `json:"created"`
	Until     time.Time `json:"until"`
}

// LinkRequest asks a machine's daemon to link a document to a session, or to unlink it.
type LinkRequest struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Path      string `json:"path"` // as the person typed it
	Link      bool   `json:"link"` // false: unlink
}

// CopyRequest asks for the first lines of a transcript in the name of another machine of the same user.
type CopyRequest struct {
	From  string `json:"from_machine"`
	To    string `json:"to_machine"`
	Host  string `json:"host"`
	Epoch string `json:"epoch"` // of generation 0 of the copy
	Lines int64  `json:"lines"`
}
