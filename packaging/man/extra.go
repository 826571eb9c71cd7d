package man

import _ "embed" // the files below

// CCShip and Server are the sections of the two programs' pages that their help does not have.
var (
	//go:embed ccship.roff
	CCShip string
	//go:embed ccship-server.roff
	Server string
)
