package redact

// Names that hold secrets: of members and of environment variables.
const (
	names = `(?:password|passwd|passphrase|client_?secret|secret_?key|api_?secret|api_?key|api-key|apikey|access_?token|` +
		`auth_?token|refresh_?token|bot_?token|private_?key|access_?key|secret)`
	variables = `(?:PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|` +
		`AUTH_KEY|ENCRYPTION_KEY|SIGNING_KEY|CREDENTIALS?)`
)

// keyBreak is what is between two lines of a key: quotes, line breaks, and what tools write at the start of a line.
const keyBreak = `(?:["',]{0,3}(?:[\r\n]|\\[nr])+[ \t]{0,12}[^\s"']{0,200}?[ \t→:|>"'+-]{0,24}|"\s?,\s?"[+ -]?)`

// genericRules are for secrets that only their surroundings tell, and for formats that every vendor shares.
var genericRules = []Rule{
	{
		Name:   "private-key",
		Source: "https://www.rfc-editor.org/rfc/rfc7468",
		Pattern: `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:([\s\S]{40,}?)-----END [A-Z0-9 ]{0,40}PRIVATE KEY` +
			`|((?:` + keyBreak + `[A-Za-z0-9+/]{40,76}={0,2}){1,}` + keyBreak + `?[A-Za-z0-9+/]{0,76}={0,2}` +
			`|(?:[\sA-Za-z0-9+/=,:]|\\[nr]|→|-){40,}))`,
		Literals: []string{"PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"}, Before: 64, After: 8192,
	},
	{ // its beginning is not shown
		Name:   "private-key",
		Source: "https://www.rfc-editor.org/rfc/rfc7468#section-3",
		Pattern: `(?:^|[^A-Za-z0-9+/])([A-Za-z0-9+/]{60,76}={0,2}(?:` + keyBreak + `[A-Za-z0-9+/]{4,76}={0,2})*)` + keyBreak +
			`-----END [A-Z0-9 ]{0,40}PRIVATE KEY`,
		Literals: []string{"PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"}, Before: 8192, After: 32,
	},
	{
		Name:     "putty-key",
		Source:   "https://the.earth.li/~sgtatham/putty/latest/htmldoc/AppendixC.html",
		Pattern:  `Private-Lines: \d+((?:\s|\\[nr])+(?:[A-Za-z0-9+/=]|\s|\\[nr]){40,})`,
		Literals: []string{"Private-Lines: "}, Before: 4, After: 4096,
	},
	{
		Name:     "jwt",
		Source:   "https://www.rfc-editor.org/rfc/rfc7519",
		Pattern:  `(?:^|[^\w])(eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]{10,})?)`,
		Literals: []string{".eyJ"}, Before: 2048,
	},
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
		Name:   "query",
		Source: "https://www.rfc-editor.org/rfc/rfc6750#section-2.3",
		Pattern: `(?i)[?&](?:amp;)?(?:(?:access_|auth_|id_|refresh_)?token|api_?key|client_secret|password|passwd)=` +
			`([^&\s"'<>\\` + "`" + `(){}\[\],;]{8,})`,
		Literals: []string{"token=", "api_key=", "apikey=", "client_secret=", "password=", "passwd="},
		Fold:     true, Before: 24, loose: true,
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
		Literals: []string{"-token", "-key"}, Fold: true,
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
		Literals: []string{"cookie"}, Fold: true,
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
		Name:   "flag",
		Source: "https://www.gnu.org/software/libc/manual/html_node/Argument-Syntax.html",
		Pattern: `(?i)\B--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|secret|token|api-?key|access-?key|secret-?key)` +
			`(?:=|\s+)["']?([^\s"'\\` + "`" + `;,)(&|<>{}\[\]]{8,})`,
		Literals: []string{
			"password", "passwd", "passphrase", "-secret", "-token", "api-key", "-apikey", "access-key", "-accesskey",
			"secret-key", "-secretkey",
		},
		Fold: true, near: option, Before: 48, loose: true,
	},
	{
		Name:     "netrc",
		Source:   "https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html",
		Pattern:  `\blogin\s+\S+\s+password\s+([^\s"'\\` + "`" + `]{6,})`, // a quote ends the string around it
		Literals: []string{"login "}, Before: 4, After: 256, loose: true,
	},
	{
		Name:   "jwk",
		Source: "https://www.rfc-editor.org/rfc/rfc7518#section-6",
		Pattern: `"kty"\s*:\s*"(?:EC|RSA|OKP|oct)"[^{}]{0,1000}?"[dk]"\s*:\s*"([\w-]{20,})"|` +
			`"[dk]"\s*:\s*"([\w-]{20,})"[^{}]{0,1000}?"kty"\s*:\s*"(?:EC|RSA|OKP|oct)"`,
		Literals: []string{"kty"}, Before: 2048, After: 2048,
	},
	{
		Name:   "password",
		Source: "https://yaml.org/spec/1.2.2/",
		Pattern: `(?im)(?:^|": ")[ \t>+-]*(?:(?:export|set) +)?[\w.-]*` +
			`(?:(?:password|passwd|passphrase|secret|api_?key)\s*|token ?)[:=]\s*` +
			`([^\s"'\\` + "`" + `;,(){}\[\]]{8,})[ \t]*(?:$|"\z)`,
		Literals: []string{"password", "passwd", "passphrase", "secret", "api_key", "apikey", "token:", "token=", "token ="},
		Fold:     true, near: assignment, Before: 64, loose: true,
	},
}
