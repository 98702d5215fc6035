package config

import "strings"

// EnvExample is units/agent.env.example: every variable with its default, each
// commented out, in the order of Config. It is generated, so that it is complete.
func EnvExample() string { return exampleOf(Variables()) }

func exampleOf(list []Variable) string {
	var b strings.Builder
	b.WriteString(`# Settings of autoscaler-agent. Copy to /etc/autoscaler-agent/agent.env.
# systemd reads this file (EnvironmentFile=): NAME=value, no export, quotes where a
# value has spaces. A variable that the agent does not know stops it with a message.
# Each line shows a default, below what it is for. After a change: systemctl restart autoscaler-agent
`)
	section := ""
	for _, v := range list {
		part, _, _ := strings.Cut(strings.TrimPrefix(v.Name, Prefix+"_"), "_")
		if part != section {
			section = part
			b.WriteByte('\n')
		}
		if v.About != "" {
			b.WriteString("# " + v.About + "\n")
		}
		b.WriteString("#" + v.Name + "=" + quoteEnv(v.Default) + "\n")
	}
	return b.String()
}

// quoteEnv writes a value so that systemd reads it back as it is.
func quoteEnv(value string) string {
	if !strings.ContainsAny(value, " \t\"'\\#;`$") {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(value) + `"`
}
