package service

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"

	"github.com/ccship/ccship/packaging"
)

// arguments matches the program in a property list.
var arguments = regexp.MustCompile(`(?s)(<key>ProgramArguments</key>\s*<array>\n).*?(\t</array>)`)

// renderAgent returns the property list for a program: that of the packages, with other arguments.
func renderAgent(o Options) (string, error) {
	var list strings.Builder
	for _, word := range append([]string{o.Binary}, o.Args...) {
		escaped, err := plistText(word)
		if err != nil {
			return "", err
		}
		list.WriteString("\t\t<string>" + escaped + "</string>\n")
	}
	at := arguments.FindStringSubmatchIndex(o.Program.agent)
	if at == nil {
		return "", fmt.Errorf("render agent: no arguments to replace")
	}
	log, err := plistText(o.LogFile)
	rest := strings.ReplaceAll(o.Program.agent[at[4]:], packaging.AgentLog, log)
	return o.Program.agent[:at[3]] + list.String() + rest, err
}

// plistText returns a text as a property list spells it. Braces are escaped because the library that writes the file
// interprets them.
func plistText(text string) (string, error) {
	var escaped strings.Builder
	if err := xml.EscapeText(&escaped, []byte(text)); err != nil {
		return "", fmt.Errorf("render agent: %w", err)
	}
	return strings.ReplaceAll(escaped.String(), "{", "&#123;"), nil
}

// programOfAgent returns the first of the arguments in a property list; "" when there are none.
func programOfAgent(text string) string {
	program := regexp.MustCompile(`(?s)<key>ProgramArguments</key>\s*<array>\s*(<string>.*?</string>)`)
	found := program.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	var path string
	if err := xml.Unmarshal([]byte(found[1]), &path); err != nil {
		return ""
	}
	return path
}
