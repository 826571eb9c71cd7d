package redact

// readers are programs, with their options, that read a secret from their input.
const readers = `--password-stdin|--with-token|--passphrase-fd|--stdin\b|-stdinpass|sudo\s+(?:-\w+\s+)*-S|-pass(?:in)?\s+stdin|cryptsetup|kinit|\bsu\s|` +
	`gh\s+(?:auth|secret|variable)|(?:secrets?|env|variable)(?:\s+versions)?[\s:]+(?:create|set|put|add|import)|store-secret|gcloud\s+secrets|` +
	`/dev/stdin|(?:sm|vnc|ch|yp)?passwd\b|pdbedit|newusers|pass\s+insert|op\s+(?:signin|item|document)|bw\s+(?:login|unlock)|lpass\s+login|keepassxc-cli|` +
	`restic\b|borg\s|zfs\s+(?:create|load-key)|zpool\s+create|vault\s+(?:login|kv|write)|npm\s+login|encrypt_string|security\s+\w+-keychain|` +
	`base64\b[^\n|]{0,20}\|\s*kubectl|\b[\w-]+\s+(?:\w+\s+)?login\b|heroku\s+auth|databricks\s+configure|age\s+-p|ansible-vault|-data-file=-`

// pipeRules are for secrets that programs are given by the shell: through a pipe, from a string, or as a file.
var pipeRules = []Rule{
	{
		Name:     "command",
		Source:   "https://www.gnu.org/software/bash/manual/bash.html#Here-Strings",
		Pattern:  `(?:` + readers + `|gpg2?\s)[^\n|;&<]{0,160}<<<\s*` + commandValue,
		Literals: []string{"<<<"}, Before: 240, After: 160, loose: true, near: words,
	},
	{
		Name:   "command",
		Source: "https://docs.docker.com/reference/cli/docker/login/#password-stdin",
		Pattern: `(?:echo|printf|yes)\s+(?:-[neE]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?` + commandValue + `(?:\s+["'][^"'\n]{0,60}["'])?\s*(?:;[^\n|]{0,60}\))?\s*\|\s*(?:[^\n|]{0,120}?)` +
			`(?:` + readers + `)`,
		Literals: []string{"passwd", "gh secret", "gh variable", "env add", "secret put", "secret set", "secret create", "secrets ", "secrets:", "/dev/stdin", "pass insert",
			"op signin", "lpass login", "keepassxc", "restic ", "store-secret", "| kubectl", "login", "unlock", "stdinpass", "data-file=-", "create-secret"},
		Before: 220, After: 60, loose: true, near: piped,
	},
	{
		Name:   "command",
		Source: "https://www.gnu.org/software/bash/manual/bash.html#Process-Substitution",
		Pattern: `(?i)(?:pass\w*|secret|key|token|data-file|auth|keyfile|user-pass|private-key)[\w-]*[= ]["']?[<$]\(\s*(?:echo|printf)\s+(?:-[ne]+\s+)?(?:["']?%s(?:\\n)?["']?\s+)?` +
			commandValue,
		Literals: []string{"<(echo", "<(printf", "<( echo", "$(echo", "$(printf"}, Before: 48, After: 160, loose: true, near: words,
	},
	{
		Name:     "command",
		Source:   "https://marlam.de/msmtp/msmtp.html#Authentication-commands",
		Pattern:  `(?i)pass(?:word|phrase)?[-_]?(?:cmd|eval|command)["']?[ \t:=]+["']?(?:echo|printf)\s+(?:-n\s+)?["']?([^\s"'` + "`" + `|<>;&]{5,})`,
		Literals: []string{"passcmd", "wordeval", "word-command", "word_command", "wordcommand", "phrase-command"}, Fold: true,
		Before: 16, After: 120, loose: true, near: words,
	},
	{
		Name:     "redis-acl",
		Source:   "https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/",
		Pattern:  `(?i)\b(?:set)?user\s+[\w.@*-]+\s+(?:[^\s>]+\s+){0,12}?["']?(?:>([^\s"'<&>=]{6,})|#([0-9a-f]{64}))(?:$|[\s"'<&])`,
		Literals: []string{"setuser ", " on >", " on #", " on '>", ` on ">`, " ~* ", "allkeys", "sanitize-payload"}, Fold: true,
		Before: 200, After: 240, near: acl, loose: true,
	},
	{
		Name:     "redis-auth",
		Source:   "https://redis.io/docs/latest/commands/auth/",
		Pattern:  `(?m)(?:` + lineStart + `|(?:-cli\b[^\n|;]{0,80}|HELLO \d |> ?)\s?)AUTH[ \t]+(?:[\w.-]+[ \t]+)?["']?([^\s"'<&` + "`" + `]{6,})["']?` + lineEnd,
		Literals: []string{"AUTH "}, Before: 100, After: 120, near: spacedValue, loose: true,
	},
	following(`vault\s+operator\s+unseal[ \t]|eas\s+secret:create[^\n|;]*\s--value|(?:doppler|infisical|supabase|convex|railway|circleci|sst|nx|eas)\s+(?:secrets?|env|variables?)(?:[\s:]+(?:set|add|create))?\s+(?:--\w+\s+)?["']?\w+[= ]|`+
		`chamber\s+write\s+\S+\s+\S+|openssl\s+(?:passwd\s+(?:-(?:[156]|apr1|salt\s+\S+)\s+)*|[^\n|;]*\s(?:-hmac|-K)\s)|`+
		`mkpasswd\s+(?:-m\s+\S+\s+)|acl\s+set-agent-token\s+\S+\s|etcdctl\s+user\s+add\s+\w+:|impacket-\w+\s+[\w.\\-]+/[\w.-]+:|`+
		`(?:plink|pscp|psftp|putty|mqtt|kitty|winscp)(?:\.exe|\.com)?\s[^\n|;]*-pw|`+
		`signtool(?:\.exe)?\s+sign\b[^\n|;]*\s/p|reg(?:\.exe)?\s+add\s[^\n|;]*(?i:password)[^\n|;]*\s/d|schtasks[^\n|;]*\s/rp|`+
		`security\s+(?:set-key-partition-list|import|export|set-keychain-password)\s[^\n|;]*\s-[kpP]|security\s+create-keychain\s+-p|`+
		`vercel\b[^\n|;]*\s-t|influx\s[^\n|;]*\s-t|netlify\s[^\n|;]*\s--auth|snmp\w+\s[^\n|;]*-c|jenkins-cli(?:\.jar)?\s[^\n|;]*-auth\s+[\w.-]+:|`+
		`smbclient\s+["']?//[^\s"']+["']?\s|vault\s+(?:kv\s+(?:put|patch)|write)\s[^\n|;]*\s\w*(?:key|value|pass|secret|token)\w*=|pdfto\w+\s+-[uo]pw|qpdf\s+--encrypt\s|`+
		`(?:--?(?i:store|key)pass|-Dsonar\.(?:login|token))|sp_add\w{0,12}login[^\n;]*,`,
		"doppler ", "infisical ", "supabase ", "convex ", "railway ", "circleci ", "eas secret", "eas env", "chamber write", "openssl passwd", "mkpasswd ", " -hmac ", " -K ",
		"set-agent-token", "user add ", "impacket-", "plink", "pscp", "psftp", "mqtt ", "signtool", "reg add", "reg.exe", "schtasks",
		"security set-", "security import", "security export", "security create", "vercel ", "influx ", "netlify ", "snmp", "jenkins-cli", "smbclient", "vault kv", "operator unseal",
		"pdfto", "qpdf ", "-Dsonar.", "sp_addl"),
	program("https://curl.se/docs/manpage.html#-E", `curl|curlie`, `(?:-E|--cert|--proxy-cert)[= ]?[ \t]*["']?[^\s:"']{1,100}:`, "curl"),
}
