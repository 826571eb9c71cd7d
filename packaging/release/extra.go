package main

import _ "embed" // the files below

// sectionsOfCCShip and sectionsOfServer are the sections of the two programs' pages that their help does not have.
var (
	//go:embed ccship.roff
	sectionsOfCCShip string
	//go:embed ccship-server.roff
	sectionsOfServer string
)
