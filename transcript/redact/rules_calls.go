package redact

// fallback is what is between the name of a variable of the environment and a value that stands for it.
const fallback = `["')\]]{0,4}(?:\s*,\s*(?:default\s*=\s*)?|\s*(?:\?:|\?\?|\|\|)\s*|\s+or\s+|\)?\.(?:unwrap_or(?:_else)?|orElse(?:Get)?|getOrDefault|getOrElse)\(\s*(?:\|_\|\s*|\(\)\s*->\s*)?|` +
	`\)?\s*\{\s*)[bru]?`

// environment is what reads a variable of the environment, or a setting.
const environment = `(?:getenv|getordefault|environ(?:\.get)?|env::var|process\.env|import\.meta\.env|\benv(?:\.fetch|\.get)?|_env|environmentvariable|\bconfig|` +
	`getproperty|lookupenv)`

// callRules are for secrets that programs are given in their code.
var callRules = []Rule{
	{ // of a variable whose name, or that of what it is assigned to, tells
		Name:   "env-default",
		Source: "https://docs.python.org/3/library/os.html#os.getenv",
		Pattern: `(?i)(?:` + environment + `\W{1,3}[\w.-]*(?:` + names + `|token|_key|_pw|\bpw)\w*|` +
			names + `["']?\s*(?::=|=>|=|:)\s*(?:<%=\s*)?[\w.:$]*` + environment + `\W{1,3}\w+)` + fallback + quotedValue,
		Literals: append([]string{"token", "_key", ".pw"}, nameLiterals...), Fold: true, near: replaced, Before: 64, After: 160, loose: true,
	},
	{ // as templates have it
		Name:   "env-default",
		Source: "https://helm.sh/docs/chart_template_guide/functions_and_pipelines/#using-the-default-function",
		Pattern: `(?i)(?:` + names + `|token|_key|_pw|\bpw)\w*(?:["'\]})]*\s*[:=]\s*["']?\{\{[^{}\n]{0,60}?|["')\]]*\s*)\|\s*default[( ]\s*(?:value\s*=\s*)?` +
			quotedValue,
		Literals: []string{"| default", "|default"}, Before: 120, After: 120, near: quoted, loose: true,
	},
	{ // as a format of what is printed has it
		Name:     "key-value",
		Source:   "https://www.gnu.org/software/bash/manual/bash.html#index-printf",
		Pattern:  `(?i)` + names + `=%[sq][^"'\n]{0,40}["']\s*[, ]\s*` + quotedValue,
		Literals: []string{"=%s", "=%q"}, Before: 48, After: 120, near: formatted, loose: true,
	},
	{ // what is typed into a field, as tests of pages do it
		Name:   "typed",
		Source: "https://playwright.dev/docs/input#text-input",
		Pattern: `(?i)(?:passw(?:or)?d|passphrase|passcode|(?-i:\b[pP]ass)|pwd|secret|(?:^|[^/a-z])token|\botp|api[-_ ]?key)[\w -]{0,20}["'` + "`" + `\])/i}]{0,6}\s*(?:,\s*|;?\s*[\w.]*` +
			`\.(?:fill|type|press_?sequentially|send_?keys|val|set_?value|input_?text|enter_?text|add_?value|replace_?text|type_?text|set|clear\(\)\.(?:type|send_?keys))\(\s*)` +
			`(?:with:\s*|default\s*=\s*|value\s*=\s*)?[bru]?(?:"([^"\s{]{6,})(?:\{\w+\})+["']|'([^'\s{]{6,})(?:\{\w+\})+'|` + quotedValue + `)`,
		Literals: append([]string{"token"}, nameLiterals...), Fold: true, near: call, Before: 8, After: 160, loose: true,
	},
	{
		Name:     "typed",
		Source:   "https://robotframework.org/SeleniumLibrary/SeleniumLibrary.html#Input%20Password",
		Pattern:  `(?i)\binput password[ \t]{2,}\S+[ \t]{2,}([^\s"'<&]{6,})`,
		Literals: []string{"input password"}, Fold: true, Before: 2, After: 120, near: words, loose: true,
	},
	{
		Name:   "typed",
		Source: "https://core.tcl-lang.org/expect/index",
		Pattern: `(?i)(?:ass(?:word|phrase|wd)[^\n]{0,60}?\bsend(?:line)?(?:\s+--)?[\s(]+[bru]?["']([^"'\s\\$]{5,})(?:\\{1,4}[rn]|["'])|` +
			`\bsend(?:line)?(?:\s+--)?[\s(]+[bru]?["']([^"'\s\\$]{5,})(?:\\{1,4}[rn])?["'][^\n]{0,40}pass(?:w|phrase|code))`,
		Literals: []string{"send ", "send(", "sendline", "send\t"}, Fold: true, Before: 100, After: 120, near: quoted, loose: true,
	},
	{
		Name:   "crypto-key",
		Source: "https://nodejs.org/api/crypto.html#cryptocreatehmacalgorithm-key-options",
		Pattern: `(?i)(?:(?:createhmac|create(?:de)?cipheriv|aes\.(?:en|de)crypt|pgp_sym_(?:en|de)crypt(?:_bytea)?|hash_hmac|openssl_(?:en|de)crypt)\s*\(\s*` +
			`(?:(?:["'][^"'\n]{1,24}["']|[\w.$]{1,60})\s*,\s*){1,2}[bru]?|(?:hmac\.(?:new|digest)|\bfernet|cookieparser|hashpw|\bbcrypt(?:\.hash(?:sync)?)?|password_(?:hash|verify)|hmacsha\d+|secretkeyspec)\s*\(\s*[bru]?)` + quotedValue,
		Literals: []string{"createhmac", "cipheriv(", "aes.encrypt", "aes.decrypt", "pgp_sym", "hash_hmac", "openssl_encrypt", "openssl_decrypt", "hmac.new(", "hmac.digest(",
			"fernet(", "cookieparser(", "hashpw(", "bcrypt.hash", "bcrypt(", "password_hash(", "password_verify(", "hmacsha", "secretkeyspec"},
		Fold: true, Before: 2, After: 200, near: quoted, loose: true,
	},
	{
		Name:     "ldap-bind",
		Source:   "https://www.rfc-editor.org/rfc/rfc4513#section-5.1.3",
		Pattern:  `(?i)bind(?:_s)?\s*\(\s*(?:[\w.$]*dn|[bru]?["'][^"'\n]{0,80}=[^"'\n]{0,80}["'])\s*,\s*[bru]?` + quotedValue,
		Literals: []string{"bind(", "bind_s("}, Fold: true, Before: 2, After: 200, near: quoted, loose: true,
	},
	{
		Name:     "sql",
		Source:   "https://www.zetetic.net/sqlcipher/sqlcipher-api/#key",
		Pattern:  `(?i)pragma\s+(?:hex)?(?:re)?key\s*=\s*\\{0,2}["']([^"'\s\\]{6,})`,
		Literals: []string{"pragma key", "pragma rekey", "pragma hexkey"}, Fold: true, Before: 2, After: 120, near: quoted, loose: true,
	},
	{ // of a column, which is the second, the third or the last one
		Name:   "sql",
		Source: "https://www.postgresql.org/docs/current/sql-insert.html",
		Pattern: `(?i)\(\s*(?:["\w` + "`" + `]+\s*,\s*["\w` + "`" + `]*(?:` + passwords + `)\w*["` + "`" + `]?\s*[,)][^()]*\)?\s*values\s*\(\s*[^,()]*,\s*[EN]?'([^'\s]{6,})'|` +
			`(?:["\w` + "`" + `]+\s*,\s*){2}["\w` + "`" + `]*(?:` + passwords + `)\w*["` + "`" + `]?\s*[,)][^()]*\)?\s*values\s*\(\s*[^,()]*,[^,()]*,\s*[EN]?'([^'\s]{6,})'|` +
			`[^()]{0,200}(?:` + passwords + `)\w*["` + "`" + `]?\s*\)\s*values\s*\([^()]*,\s*[EN]?'([^'\s]{6,})'\s*\))`,
		Literals: []string{"values (", "values("}, Fold: true, Before: 240, After: 240, near: columns, loose: true,
	},
	{
		Name:     "jwt-key",
		Source:   "https://learn.microsoft.com/aspnet/core/security/authentication/configure-jwt-bearer-authentication",
		Pattern:  `(?i)["']?(?:jwt\w*|signing|encryption|crypto|cipher|hmac)["']?\s*[:=]?\s*\{?\s*(?:["']?\w+["']?\s*[:=]\s*["'][^"'\n]{1,80}["'],?\s*){0,3}["']?key["']?\s*[:=]\s*["']?([A-Za-z0-9+/=_-]{22,})(?:$|[\s"',}])`,
		Literals: []string{"jwt", "signing", "encryption", "crypto:", "cipher:", "hmac:"}, Fold: true, Before: 2, After: 240, Entropy: 3.5, near: keyMember, loose: true,
	},
}
