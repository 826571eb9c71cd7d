package redact

import "slices"

// Names that hold secrets: of members, variables and settings, and of environment variables. Words that begin alike
// stand together: the compiler of expressions joins only neighbours, and each word that begins on its own costs time at
// every byte.
const (
	keyKinds = `(?:access|account|admin|aes|api|app|application|auth|client|consumer|cookie|crypto|decryption|deploy|` +
		`encryption|hmac|license|master|preshared|private|rsa|secret|security|server|service|session|shared|signing|storage|subscription|validation|webhook|write)`
	tokenKinds = `(?:access|admin|api|auth|bearer|bot|client|deploy|github|gitlab|id|identity|jwt|login|npm|oauth|` +
		`personal|private|push|refresh|registry|sas|security|service|session|slack|user|vault)`
	// passwords are names for which a short value will do.
	passwords = `(?:password|passwd|passphrase|passcode|passwort|pass|pwd|senha|secrets?|kennwort|wachtwoord|contrase(?:ñ|n)a|mot_?de_?passe|(?:\b|[^a-z])(?:psk|creds|credential|credentials\b)|(?:[a-z]_|\b)pw)`
	names     = `(?:` + passwords + `|` + keyKinds + `[_. -]?key|` + tokenKinds + `[_.-]?token)` +
		`(?:[_.-]?(?:key|base|value|string|access|prod|dev|live|test|staging|hash|salt|id|[0-9]{1,2}))*`
	variables = `(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE|[A-Z0-9_]PASS|PWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|` +
		`AUTH_KEY|APP_KEY|MASTER_KEY|ENCRYPTION_KEY|SIGNING_KEY|LICENSE_KEY|ACCOUNT_KEY|SERVICE_KEY|KEY_BASE|` +
		`CREDENTIALS?|CREDS|_AUTH|_PSK|_SALT|_PW)`
	variableEnd = `(?:_?[0-9]+|_(?:PROD|PRODUCTION|DEV|LIVE|TEST|STAGING|HASH|ID|VALUE|STRING))?`
	// quotedValue is one without spaces, in quotes; a backslash does not end it. The end of what is searched may be within.
	quotedValue = `(?:"{1,3}((?:[^"\s\\]|\\[^"\s]){6,})(?:\\?"|\z)|'{1,3}((?:[^'\s\\]|\\[^'\s]){6,})(?:\\?'|\z)|` + "`([^`\\s]{6,})(?:`|\\z))"
	// wordValue is one without quotes; an element may end behind it.
	wordValue = `((?:[^\s"'\\` + "`" + `;,)&|<]|<[^/\s]){6,})`
	// lineEnd is behind the last word of a line, which may be in quotes, an element, or a parameter of a request in a log.
	lineEnd   = `[ \t]*(?:$|["'<&\\\r]|\d{3}(?:$|[ "\\])|HTTP/)`
	bareValue = `([^\s"'\\` + "`" + `;,)(&|<>{}\[\]]{6,})`
	// assigned is what parts a name from its value.
	assigned = `["')\]]{0,3}(?:\[\w*\])?\s*(?::\s*&?[A-Za-z][\w<>.?| ]{0,24}\s?=|:=|=>|==?|\?\??=|\?\?|\?:|\|\|=?|:|\s(?:string|String)\s?=)\s*(?:!![a-z]+\s+|<%=\s*)?(?:[brfu]|@|N|\(|\[)?`
	// identified begins what a statement says of a user; prose says it of anything.
	identified = `(?:(?-i:\bIDENTIFIED)|(?:(?:\b(?:user|role|exists|to)\s|,)\s*\S+\s+)identified)`
	lineStart  = `(?:^|<\w{1,16}>|[?&]\w{1,20}=|[{\[,:(=]\s?["'])[ \t>+-]*`
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
		Name:     "query",
		Source:   "https://cloud.google.com/docs/authentication/api-keys-use#using-with-rest",
		Pattern:  `[?&](?:amp;)?key=([A-Za-z0-9_-]{24,})(?:[^\w.-]|\z)`,
		Literals: []string{"?key=", "&key=", "amp;key="}, Before: 6, After: 160, Entropy: 3.3, loose: true,
	},
	{
		Name:   "api-key-header",
		Source: "https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_set_header",
		Pattern: `(?i)(?:proxy_set_header|add_header|requestheader[ \t]+set|header[ \t]+set|set_header)[ \t]+["']?[\w-]*(?:key|token|secret|auth|password)[\w-]*["']?` +
			`[ \t]+(?:"([^"\s$]{8,})"|([^\s"';$]{8,}))`,
		Literals: []string{"_header ", "header set"}, Fold: true, Before: 24, After: 160, loose: true,
	},
	{ // a token as the name of a user
		Name:     "url-token",
		Source:   "https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/authenticating-as-a-github-app-installation",
		Pattern:  `[A-Za-z][A-Za-z0-9+.-]*://([A-Za-z0-9_-]{20,})@[\w.\[-]`,
		Literals: []string{"://"}, Before: 24, near: usertoken, Entropy: 3, loose: true,
	},
	{
		Name:     "dsn",
		Source:   "https://github.com/go-sql-driver/mysql#dsn-data-source-name",
		Pattern:  `[\w.-]:([^\s:@/"'` + "`" + `]{4,})@(?:tcp|unix|udp)\(`,
		Literals: []string{"@tcp(", "@unix(", "@udp("}, Before: 96, After: 8, loose: true,
	},
	{
		Name:     "bearer",
		Source:   "https://www.rfc-editor.org/rfc/rfc6750",
		Pattern:  `(?i)\bbearer\s+["']?([A-Za-z0-9._~+/-]{16,}=*)`,
		Literals: []string{"bearer"}, Fold: true, near: bearer, Before: 8, loose: true,
	},
	{
		Name:   "query",
		Source: "https://www.rfc-editor.org/rfc/rfc6750#section-2.3",
		Pattern: `(?i)[?&#](?:amp;)?(?:(?:(?:access|auth|id|refresh|private|job|session|reset|invite|invitation|confirmation|verification|login|magic|sso|user|api|security|bot)_)?token|api_?key|client_secret|password|` +
			`passwd|pwd|secret|sig|signature|x-(?:amz|goog|oss)-(?:signature|security-token)|hapikey|subscription-key|` +
			`authkey|auth|jwt|assertion|sas)=([^&\s"'<>\\` + "`" + `(){}\[\],;#]{8,})`,
		Literals: []string{"token=", "key=", "secret=", "password=", "passwd=", "pwd=", "sig=", "signature=", "auth=", "jwt=",
			"assertion=", "&sas="},
		Fold: true, Before: 24, After: 2048, near: query, loose: true,
	},
	{
		Name:     "aws-credentials",
		Source:   "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html",
		Pattern:  `(?:AKIA|ASIA)[A-Z2-7]{16}\b[\s\S]{0,120}?(?:^|[^A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|\z)`,
		Literals: []string{"AKIA", "ASIA"}, Before: 2, After: 200, Entropy: 4, near: keyID,
	},
	{
		Name:     "aws-credentials",
		Source:   "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html",
		Pattern:  `(?:^|[^A-Za-z0-9/+=])([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=][\s\S]{0,60}?|)(?:AKIA|ASIA)[A-Z2-7]{16}\b`,
		Literals: []string{"AKIA", "ASIA"}, Before: 110, After: 24, Entropy: 4, near: keyID,
	},
	{
		Name:   "authorization",
		Source: "https://www.rfc-editor.org/rfc/rfc9110#section-11.6.2",
		Pattern: `(?i)authorization["']?(?:\s*[:=,]\s*["']?|\s+["'])(?:(?:basic|token|bot|api-key|digest|[a-z]{0,12}key|bearer|negotiate|` +
			`ghtoken|sso-key|aws4-hmac-sha256\s+\S+\s+\S+\s+signature)[ =]+["']?)?([^\s"',\\<` + "`" + `]{8,})`,
		Literals: []string{"authorization"}, Fold: true, near: nearby, Before: 8, loose: true,
	},
	{
		Name:   "api-key-header",
		Source: "https://swagger.io/docs/specification/v3_0/authentication/api-keys/",
		Pattern: `(?i)\b(?:x-[a-z-]{0,30}(?:key|token|secret|auth|signature|password)|[a-z]{1,20}-token|api-?key|` +
			`(?:subscription|functions|service|master|admin|access|secret|auth|private|signing)-key)` +
			`["']?[ \t]*[:=,]\s*["']?([A-Za-z0-9._~+/=|!-]{12,})`,
		Literals: []string{"-token", "-key", "-secret", "-auth", "-signature", "-password", "apikey"}, Fold: true,
		near: assignment, Before: 32, loose: true,
	},
	{
		Name:     "cookie",
		Source:   "https://www.rfc-editor.org/rfc/rfc6265",
		Pattern:  `(?i)\bcookie["']?\s*[:,]\s*["']?([^\s"'=;:,(){}<>]+=[^\r\n"'\\<>{}` + "`" + `]{8,})`,
		Literals: []string{"cookie"}, Fold: true,
		near: cookies, Before: 12, loose: true,
	},
	{
		Name:   "env",
		Source: "https://12factor.net/config",
		Pattern: `(?:^|[^A-Za-z0-9_])[A-Z0-9_]*` + variables + variableEnd + `["']?\]?[ \t]?(?:\?=|:=|=>|=|:)[ \t]?(?:` +
			quotedValue + `|` + wordValue + `)`,
		Literals: []string{"PASS", "PWD", "SECRET", "TOKEN", "API_KEY", "APIKEY", "_KEY", "CREDENTIAL", "CREDS", "KEY_BASE",
			"_AUTH", "_PSK", "_SALT", "_PW"},
		near: variable, Before: 64, After: 96, loose: true,
	},
	{
		Name:   "env",
		Source: "https://docs.docker.com/reference/dockerfile/#env",
		Pattern: `(?i)(?:\b(?:env|setx|setenv|set -x|set -gx|set-item|heroku config:set)|#[ \t]*define)[ \t]+(?:/[ms][ \t]+)?["']?` +
			`(?-i:[A-Z0-9_]*` + variables + variableEnd + `)["']?[ \t]+(?:` + quotedValue + `|` + wordValue + `)`,
		Literals: []string{"PASS", "PWD", "SECRET", "TOKEN", "API_KEY", "APIKEY", "_KEY", "CREDENTIAL", "CREDS", "_AUTH"},
		near:     spaced, Before: 80, After: 96, loose: true,
	},
	{ // any other key: what is as random as one
		Name:   "env-key",
		Source: "https://12factor.net/config",
		Pattern: `(?:^|[^A-Za-z0-9_])[A-Z0-9_]+_(?:KEY|API|ACCESS|BEARER|REFRESH|CERTIFICATE|PAT|WRITE|PUSH|AUTHORIZATION)[ \t]{0,8}[=:][ \t]{0,8}["']?([A-Za-z0-9+/_.:-]{4,}?[A-Za-z0-9]{16,}[A-Za-z0-9+/_.:-]*={0,2}|` +
			`(?:base64:)?[A-Za-z0-9+/_-]{20,}={0,2})(?:[^A-Za-z0-9+/_=.-]|\z)`, // with dots or colons: a part is long
		Literals: []string{"_KEY", "_API", "_ACCESS", "_BEARER", "_REFRESH", "_CERTIFICATE", "_PAT=", "_PAT:", "_WRITE=", "_PUSH", "_AUTHORIZATION"},
		near:     variable, Before: 64, Entropy: 3.2, loose: true,
	},
	{
		Name:     "secret",
		Source:   "https://spec.openapis.org/oas/v3.1.0#security-scheme-object",
		Pattern:  `(?i)` + names + assigned + quotedValue,
		Literals: nameLiterals, Fold: true, near: quotation, Before: 24, After: 96, loose: true,
	},
	{
		Name:     "token",
		Source:   "https://www.rfc-editor.org/rfc/rfc6750",
		Pattern:  `(?i)(?:^|[^a-z])token` + assigned + `["']([A-Za-z0-9._~+/=-]{16,})["']`,
		Literals: []string{"token"}, Fold: true, near: quotation, Before: 4, After: 96, Entropy: 3, loose: true,
	},
	{
		Name:     "secret",
		Source:   "https://docs.python.org/3/library/stdtypes.html#mapping-types-dict",
		Pattern:  `(?i)(?:^|[^:\s]\s*)["'](?:[\w./-]|[ :]\w){0,40}?` + names + `["']\s*,\s*(?:"\\|'\\)?` + quotedValue,
		Literals: nameLiterals, Fold: true, near: call, Before: 64, After: 96, loose: true,
	},
	{
		Name:   "setter",
		Source: "https://docs.oracle.com/javase/8/docs/api/javax/sql/DataSource.html",
		Pattern: `(?i)(?:(?:set|with|use|put|add|store|key)_?\w{0,20}?` + names + `|\.(?:password|passwd|passphrase|pass|secret|token)|` +
			`ConvertTo-SecureString(?:\s+-(?:String|AsPlainText|Force))*)(?:\s*\(\s*|[ \t]+)` + quotedValue,
		Literals: append(slices.Clone(nameLiterals), "token", "securestring"), Fold: true, near: call, Before: 40, After: 96, loose: true,
	},
	{ // a user and a password that a program is given one after the other
		Name:    "basic-auth",
		Source:  "https://requests.readthedocs.io/en/latest/user/authentication/",
		Pattern: `(?i)(?:` + loginCalls + `\s*[=(:]\s*[(\[]?\s*` + argument + `{1,3}|` + passwordCalls + `\s*\(\s*` + argument + `{0,2})[bru]?` + quotedValue + `\s*[,)\]]`,
		Literals: []string{"basicauth", "basic_auth", "auth", "credential", "login", "log_in", "logon", "log_on", "signin", "sign_in", "getconnection", "connect",
			"pdo", "mysqli", "ftp(", "plainauth", "wifi.begin", "jwt."},
		Fold: true, near: arguments, Before: 12, After: 160, loose: true,
	},
	{
		Name:     "xml",
		Source:   "https://maven.apache.org/settings.html#servers",
		Pattern:  `(?i)` + names + `["']?(?:\s[^<>]{0,100})?>\s*(?:<value>\s*)?(?:<!\[CDATA\[)?([^<>\s]{6,}?)(?:\]\]>)?\s*</`,
		Literals: nameLiterals, Fold: true, near: element, Before: 24, After: 96, loose: true,
	},
	{
		Name:     "xml",
		Source:   "https://learn.microsoft.com/dotnet/framework/configure-apps/file-schema/appsettings/",
		Pattern:  `(?i)["'][\w:.-]{0,60}?` + names + `["']\s+(?:value|defaultvalue|content)\s*=\s*["']([^"'<>\s]{6,})["']`,
		Literals: nameLiterals, Fold: true, near: quotation, Before: 64, After: 96, loose: true,
	},
	{ // key=value among others: connection strings, options, forms, settings of charts
		Name:   "key-value",
		Source: "https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-KEYWORD-VALUE",
		Pattern: `(?i)(?:^|[\s;,&?"'|=({:@/-])[\w.\[\]-]{0,60}?` + names + `(?:\[\w*\])?[ \t]?=[ \t]?([^\s"'\\` + "`" +
			`;,)(&|<>{}\[\]]{6,})(?:[\s"';,&|)<}\\` + "`" + `]|\z)`,
		Literals: nameLiterals, Fold: true, near: keyValue, Before: 64, After: 96, loose: true,
	},
	{
		Name:   "sql",
		Source: "https://dev.mysql.com/doc/refman/8.4/en/create-user.html",
		Pattern: `(?i)(?:(?:` + identified + `\s+(?:with\s+\S+\s+)?(?:by|as)(?:\s+password|\s+values)?|\bwith\s+(?:encrypted\s+)?password\s*=?|` +
			`\bset\s+password(?:\s+for\s+\S+)?\s*=(?:\s*password\s*\()?|\b(?:encrypted\s+|login\s+)?password\s+|[(,]\s*secret\s+|` +
			`(?:(?-i:\bPASSWORD)|[(,=]\s*password)\s*\()\s*` +
			`(?:[EN]?'([^'\s]{5,})'|"([^"\s]{5,})")|\bsecret\s+"([^"\s]{5,})"\s*;)`, // the last is BIND's
		Literals: []string{"identified", "password", "secret"},
		Fold:     true, Before: 96, After: 128, near: statement, loose: true,
	},
	{
		Name:     "sql",
		Source:   "https://docs.oracle.com/en/database/oracle/oracle-database/19/sqlrf/CREATE-USER.html",
		Pattern:  `(?i)` + identified + "\\s+by\\s+([^\\s\"'`;,()][^\\s\"';,()]{5,})",
		Literals: []string{"identified"}, Fold: true, Before: 96, loose: true,
	},
	{
		Name:   "flag",
		Source: "https://www.gnu.org/software/libc/manual/html_node/Argument-Syntax.html",
		Pattern: `(?i)\B--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|pass|pwd|secret|token|api-?key|access-?key|secret-?key|` +
			`apikey|account-?key|auth-?key|master-?key|license-?key|encryption-?key|oauth2-bearer|storepass|keypass|` +
			`srcstorepass|deststorepass|secret-string|secret-id|psk|credentials?|userpass|requirepass|masterauth)` +
			`(?:=|[ \t]+|:|["']\s*,\s*)(?:"([^"\s]{6,})"|'([^'\s]{6,})'|([^\s"'\\` + "`" + `;,)(&|<>{}\[\]]{6,}))`,
		Literals: []string{
			"password", "passwd", "passphrase", "-pass", "-pwd", "-secret", "-token", "api-key", "apikey", "access-key",
			"accesskey", "secret-key", "account-key", "auth-key", "master-key", "license-key", "encryption-key", "oauth2-bearer",
			"storepass", "keypass", "-psk", "credential", "userpass", "requirepass", "masterauth",
		},
		Fold: true, near: option, Before: 48, loose: true,
	},
	{
		Name:   "netrc",
		Source: "https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html",
		Pattern: `\blogin\s+\S+\s+(?:account\s+\S+\s+)?password\s+(?:"([^"\r\n]{6,})"|'([^'\r\n]{6,})'|` +
			wordValue + `)`, // a quote ends the string around it
		Literals: []string{"login"}, Before: 4, After: 256, near: machine, loose: true,
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
		Pattern: `(?im)` + lineStart + `(?:(?:export|set|local|const|let|var|declare|-e|--env|environment:) +)?` +
			`[\w.:/\[\]"'-]{0,80}?(?:` + names + `["'\]]{0,2}[ \t]*|(?:\b|[^a-z])token ?)(?::|=|=>|:=)\s*` +
			`(?:![\w!-]+\s+)?(?:(?:[|>][+-]?\d?|<<[~-]?["']?\w+["']?)[ \t]*\r?\n\s*)?([^\s"'\\` + "`" + `]{6,}?)[;,]?(?:$|[\s"'])`,
		Literals: append(slices.Clone(nameLiterals), "token"), Fold: true, near: unquoted, Before: 96, After: 96, loose: true,
	},
	{ // in the middle of a line, what has letters and digits
		Name:     "password",
		Source:   "https://yaml.org/spec/1.2.2/",
		Pattern:  `(?i)(?:^|[^\w])[\w.-]{0,40}?` + names + `["']?[ \t]?[:=][ \t]?([A-Za-z0-9!@#%^*_+.=/-]{8,}?)(?:$|[\s"'<&},;\]]|\\n)`,
		Literals: nameLiterals, Fold: true, near: unquoted, Before: 56, After: 96, Entropy: 3, loose: true,
	},
	{ // in the middle of a line, what is as long as a token
		Name:     "token",
		Source:   "https://www.rfc-editor.org/rfc/rfc6750",
		Pattern:  `(?i)(?:^|[^\w.-])token["']?[ \t]?[:=][ \t]?["']?([A-Za-z0-9._~+/=-]{20,})(?:$|[\s"'<&},;\]]|\\n)`,
		Literals: []string{"token"}, Fold: true, near: member, Before: 4, After: 96, Entropy: 3, loose: true,
	},
	{
		Name:   "password",
		Source: "https://marlam.de/msmtp/msmtp.html#General-commands",
		Pattern: `(?im)` + lineStart + `(?:(?:[\w.-]{1,24}[_-]|[a-z]{2,12} [\w.:]{1,40} )?(?-i:[Pp]ass)|(?:["\w./:-]{1,40}[ \t]+){0,3}?(?:[\w./:-]{1,40}[_./-])?[a-z]{0,10}?(?:password|passwd|passphrase|psk|(?:psk|shared-)?secret|pre-shared-key|key-string|plaintext))` +
			`(?:[ \t]+(?:\d{1,3}|ascii(?: \d)?|hex|text|string|local|ENC|ascii-text|\d string|encrypted|--\w+)){0,2}[ \t]+["']?([^\s"'<&*` + "`" + `-][^\s"'<&` + "`" + `]{5,})["']?` + lineEnd,
		Literals: []string{"pass", "psk", "secret", "pre-shared-key", "key-string", "plaintext"}, Fold: true, near: spacedValue, Before: 96, After: 96, loose: true,
	},
	{ // settings whose value is the next word
		Name:   "password",
		Source: "https://redis.io/docs/latest/operate/oss_and_stack/management/security/",
		Pattern: `(?im)` + lineStart + `(?:(?:config set )?(?:requirepass|masterauth)|bindpw|rootpw|olcRootPW:|default_password|` +
			`enable (?:secret|password)(?: \d)?|authtoken|rpcpassword=|option (?:key|sae_password)|r[ow]community6?|community:|createuser \S+ (?:md5|sha)[\d-]*|rootpw[ \t]+--\w+|(?:[a-z0-9_-]+\.){1,6}[\w-]*` + passwords + `)` +
			`[ \t]+["']?([^\s"'<&` + "`" + `]{6,})["']?` + lineEnd,
		Literals: []string{"requirepass", "masterauth", "bindpw", "rootpw", "default_password", "enable secret", "enable password",
			"authtoken", "option key", "option sae", "rocommunity", "rwcommunity", "community:", "createuser ", ".passw", ".secret", ".pwd"},
		Fold: true, near: spaced, Before: 64, After: 96, loose: true,
	},
	{
		Name:   "password",
		Source: "https://www.cisco.com/c/en/us/td/docs/ios-xml/ios/security/s1/sec-s1-cr-book/sec-cr-s5.html",
		Pattern: `(?im)` + lineStart + `(?:snmp-server community|(?:tacacs|radius)-server (?:host \S+ )?key(?: \d)?|crypto isakmp key(?: \d)?|(?:ip |ipv6 )?ospf (?:authentication-key|message-digest-key \d+ md5)(?: \d)?|pre-shared-key(?: local| remote| address \S+)?(?: key| ascii-text)?|` +
			`set security ike policy \S+ pre-shared-key ascii-text|\d{1,5}[ \t]+(?:M|MD5|SHA1|SHA256|SHA512|AES128CMAC))` +
			`[ \t]+["']?([^\s"'<&` + "`" + `]{6,})(?:$|[\s"'<&\\])`,
		Literals: []string{"snmp-server", "-server ", "isakmp key", "authentication-key ", "message-digest-key ", "pre-shared-key ", " md5 ", " sha1 ", " sha256 ", " sha512 "}, Fold: true, near: spaced, Before: 64, After: 96, loose: true,
	},
	{
		Name:     "psk",
		Source:   "https://docs.strongswan.org/docs/latest/swanctl/swanctlConf.html",
		Pattern:  `:[ \t]*(?:PSK|EAP|XAUTH|NTLM)[ \t]+(?:0s([A-Za-z0-9+/=]{8,})|"([^"\r\n]{6,})")`,
		Literals: []string{": PSK", ": EAP", ": XAUTH", ": NTLM"}, near: quoted, Before: 4, After: 96, loose: true,
	},
	{
		Name:   "password",
		Source: "https://www.cisco.com/c/en/us/td/docs/ios-xml/ios/security/d1/sec-d1-cr-book/sec-cr-t2.html",
		Pattern: `(?im)` + lineStart + `username \S+ (?:privilege \d+ )?(?:secret|password)(?: \d)?[ \t]+["']?([^\s"'<&` + "`" +
			`]{6,})["']?` + lineEnd,
		Literals: []string{"username "}, Fold: true, near: account, Before: 64, After: 96, loose: true,
	},
	{
		Name:     "password",
		Source:   "https://www.postfix.org/SASL_README.html#client_sasl_enable",
		Pattern:  `(?m)` + lineStart + `\[?[\w.-]+\]?:(?:25|465|587|2525)\s+[^\s:]+:([^\s"']{6,})|static:[^\s:]+:([^\s"']{6,})`,
		Literals: []string{":587", ":465", ":2525", "static:"}, Before: 120, After: 200, near: port, loose: true,
	},
	{
		Name:     "name-value",
		Source:   "https://hadoop.apache.org/docs/current/hadoop-project-dist/hadoop-common/core-default.xml",
		Pattern:  `(?i)(?:>\s*[\w.:-]{0,80}?(?:` + names + `|token)\s*</[\w-]+>|\bname=["'][\w.:-]{0,80}?(?:` + names + `|token)["'][^<>]{0,80}>)\s*<(?:[\w-]+-)?(?:value|string|data)>([^<>\s]{6,})</`,
		Literals: append(slices.Clone(nameLiterals), "token"), Fold: true, near: valued, Before: 96, After: 200, loose: true,
	},
	{
		Name:     "name-value",
		Source:   "https://learn.microsoft.com/azure/azure-resource-manager/templates/parameter-files",
		Pattern:  `(?i)["']?[\w.-]{0,60}?(?:` + names + `|token)["']?\s*(?:[:=]\s*|["']?\w+["']\s*)?\{\s*(?:["']?\w+["']?\s*[:=]\s*["']?[\w.-]{1,20}["']?\s*,\s*){0,3}["']?(?:value|default)["']?\s*[:=]\s*` + quotedValue,
		Literals: append(slices.Clone(nameLiterals), "token"), Fold: true, near: braced, Before: 80, After: 128, loose: true,
	},
	{ // the name and the value are members of their own
		Name:   "name-value",
		Source: "https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/",
		Pattern: `(?i)["']?(?:name|key|id|field|type|parameterkey)["']?\s*[:=]\s*["']?[\w.-]{0,60}?(?:` + names + `|token)["']?\s*,?\s*` +
			`["']?(?:value|parametervalue|default)["']?\s*[:=]\s*(?:` + quotedValue + `|([^\s"'\\,{}]{6,}))`,
		Literals: append(slices.Clone(nameLiterals), "token"), Fold: true, near: valued, Before: 80, After: 128, loose: true,
	},
}

// nameLiterals are parts of names, in lower case.
var nameLiterals = []string{
	"passw", "passphrase", "passcode", "pass", "kennwort", "wachtwoord", "senha", "contrase", "mot_de_passe", "motdepasse", "pwd", "_pw", ".pw", " pw", `"pw`, "'pw", "=pw", "secret", "psk", "creds", "credential", "_key", "-key", "apikey",
	"accesskey", "privatekey", "authkey", "masterkey", "accountkey", "sharedkey", "clientkey", "encryptionkey", "signingkey",
	"licensekey", "serverkey", "sessionkey", "validationkey", "decryptionkey", "subscriptionkey", "storagekey", "servicekey",
	"presharedkey", "api key", "api.key", "access key", "access.key", "auth.key", "private.key", "_token", "-token", "accesstoken", "authtoken", "refreshtoken", "bottoken", "apitoken", "bearertoken",
	"sessiontoken", "deploytoken", "usertoken", "privatetoken", "oauthtoken", "slacktoken", "githubtoken", "clienttoken", "identitytoken",
}
