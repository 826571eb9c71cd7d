package redact

// Names that hold secrets: of members and of environment variables.
const (
	names = `(?:password|passwd|passphrase|client_?secret|secret_?key|api_?secret|api_?key|api-key|apikey|access_?token|` +
		`auth_?token|refresh_?token|bot_?token|private_?key|access_?key|secret)`
	variables = `(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|` +
		`AUTH_KEY|ENCRYPTION_KEY|SIGNING_KEY|CREDENTIALS?)`
)

// genericRules are for secrets that only their surroundings tell, and for formats that every vendor shares.
var genericRules = []Rule{
	{
		Name:   "private-key",
		Source: "https://www.rfc-editor.org/rfc/rfc7468",
		Pattern: `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:([\s\S]{40,}?)-----END [A-Z0-9 ]{0,40}PRIVATE KEY` +
			`|((?:[\sA-Za-z0-9+/=,:]|\\[nr]|→|-){40,}))`,
		Literals: []string{"PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"}, Before: 64, After: 8192,
	},
	{
		Name:     "putty-key",
		Source:   "https://the.earth.li/~sgtatham/putty/latest/htmldoc/AppendixC.html",
		Pattern:  `Private-Lines: \d+((?:\s|\\[nr])+(?:[A-Za-z0-9+/=]|\s|\\[nr]){40,})`,
		Literals: []string{"Private-Lines: "}, Before: 4, After: 4096,
	},
	token("jwt", "https://www.rfc-editor.org/rfc/rfc7519", `eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]{10,})?`, "eyJ"),
	{
		Name:     "url-password",
		Source:   "https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1",
		Pattern:  `[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>\\?#` + "`" + `()]*:([^\s/@"'<>\\?#` + "`" + `()]{3,})@[\w.\[-]`,
		Literals: []string{"://"}, Before: 24, near: userinfo, loose: true,
	},
	{
		Name:     "bearer",
		Source:   "https://www.rfc-editor.org/rfc/rfc6750",
		Pattern:  `(?i)\bbearer\s+["']?([A-Za-z0-9._~+/-]{16,}=*)`,
		Literals: []string{"bearer"}, Fold: true, Before: 8, loose: true,
	},
	{
		Name:   "authorization",
		Source: "https://www.rfc-editor.org/rfc/rfc9110#section-11.6.2",
		Pattern: `(?i)authorization["']?\s*[:=,]\s*["']?(?:basic|token|bot|apikey|api-key|digest|key|bearer)[ =]+["']?` +
			`([^\s"',\\` + "`" + `]{8,})`,
		Literals: []string{"authorization"}, Fold: true, near: assignment, Before: 8, loose: true,
	},
	{
		Name:     "api-key-header",
		Source:   "https://swagger.io/docs/specification/v3_0/authentication/api-keys/",
		Pattern:  `(?i)\b(?:x-[a-z-]{0,20}(?:key|token)|private-token|api-key)["']?\s*[:=]\s*["']?([A-Za-z0-9._~+/=-]{12,})`,
		Literals: []string{"x-api-key", "x-auth-token", "-token:", "-token\"", "-key:", "-key\"", "api-key"}, Fold: true,
		near: assignment, Before: 32, loose: true,
	},
	{
		Name:     "basic",
		Source:   "https://curl.se/docs/manpage.html#-u",
		Pattern:  `\bcurl\b[^\r\n]{0,300}?\s(?:-u|--user)[ =]["']?[^\s:"'$]+:([^\s"'$\\]{6,})`,
		Literals: []string{"curl "}, Before: 4, loose: true,
	},
	{
		Name:     "cookie",
		Source:   "https://www.rfc-editor.org/rfc/rfc6265",
		Pattern:  `(?i)\bcookie["']?\s*[:,]\s*["']?([^\s"'=;:,(){}<>]+=[^\r\n"'\\<>{}` + "`" + `]{8,})`,
		Literals: []string{"cookie:", "cookie\"", "cookie'", "cookie "}, Fold: true,
		near: assignment, Before: 12, loose: true,
	},
	{
		Name:   "env",
		Source: "https://12factor.net/config",
		Pattern: `(?:^|[^A-Za-z0-9_])[A-Z0-9_]*` + variables +
			`(?:_?[0-9]+|_(?:PROD|PRODUCTION|DEV|LIVE|TEST|STAGING))?\s?[=:]\s?(?:` +
			`"([^"\r\n\\]{6,})"|'([^'\r\n\\]{6,})'|([^\s"'\\` + "`" + `;,)&|]{6,}))`,
		Literals: []string{"PASS", "_PWD", "SECRET", "TOKEN", "API_KEY", "APIKEY", "_KEY", "CREDENTIAL"},
		near:     variable, Before: 64, loose: true,
	},
	{
		Name:    "secret",
		Source:  "https://spec.openapis.org/oas/v3.1.0#security-scheme-object",
		Pattern: `(?i)` + names + `["']?\s*(?::|=|=>|:=)\s*(?:"([^"\s\\]{8,})"|'([^'\s\\]{8,})')`,
		Literals: []string{
			"passw", "passphrase", "secret", "api_key", "api-key", "apikey", "access_token", "accesstoken", "auth_token",
			"authtoken", "refresh_token", "refreshtoken", "bot_token", "bottoken", "private_key", "privatekey", "access_key",
			"accesskey",
		},
		Fold: true, near: assignment, Before: 16, loose: true,
	},
	{
		Name:   "password",
		Source: "https://yaml.org/spec/1.2.2/",
		Pattern: `(?im)^[ \t>+-]*[\w.-]*(?:password|passwd|passphrase|secret|api_?key|token)\s*[:=]\s*` +
			`([^\s"'\\` + "`" + `;,(){}\[\]]{8,})[ \t]*$`,
		Literals: []string{"password", "passwd", "passphrase", "secret", "api_key", "apikey", "token:", "token=", "token ="},
		Fold:     true, near: assignment, Before: 64, loose: true,
	},
}
