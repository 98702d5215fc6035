package config

import (
	"fmt"
	"strings"
	"time"
)

// ManPages are the pages of section 5 about the two files that an operator edits, by the names of
// their files. They come from the tables that the agent reads these files by.
func ManPages(date time.Time, source string) map[string]string {
	head := func(title string) string {
		return fmt.Sprintf(".TH %q \"5\" %q %q \"autoscaler-agent\"\n.nh\n.ad l\n", strings.ToUpper(title), date.Format("Jan 2006"), source)
	}
	var env strings.Builder
	env.WriteString(head("agent.env") + `.SH NAME
agent.env \- settings of autoscaler\-agent
.SH SYNOPSIS
` + roff(EnvFile) + `
.SH DESCRIPTION
systemd reads this file (EnvironmentFile=): NAME=value, one a line, no export, quotes where a value has spaces.
A variable that the agent does not know stops it with a message. After a change: systemctl restart autoscaler\-agent.
.SH VARIABLES
`)
	for _, v := range Variables() {
		fmt.Fprintf(&env, ".TP\n\\fB%s\\fP=%s\n%s\n", roff(v.Name), roff(v.Default), roff(v.About))
	}
	env.WriteString(".SH EXIT STATUS\nautoscaler\\-agent run ends with 78 where this file has a mistake; systemd does not start it again before that is corrected.\n" +
		".SH SEE ALSO\ngroups.yaml(5), autoscaler\\-agent\\-check(8), systemd.exec(5)\n")
	var groups strings.Builder
	groups.WriteString(head("groups.yaml") + `.SH NAME
groups.yaml \- settings of autoscaler\-agent's node groups
.SH SYNOPSIS
/etc/autoscaler\-agent/groups.yaml
.SH DESCRIPTION
Prices, pauses, headroom and more of single node groups, and what a cloud cannot tell. The file is optional. It is YAML; a field
that the agent does not know is refused. autoscaler\-agent check \-\-groups FILE judges one, systemctl reload autoscaler\-agent takes it.
.SH FIELDS
`)
	for _, f := range groupsFields() {
		fmt.Fprintf(&groups, ".TP\n\\fB%s\\fP (%s)\n%s\n", roff(f.Path), roff(f.Type), roff(f.About))
	}
	groups.WriteString(".SH FILES\n/usr/share/autoscaler\\-agent/groups.yaml.example shows every field.\n.SH SEE ALSO\nagent.env(5), autoscaler\\-agent\\-check(8)\n")
	return map[string]string{"agent.env.5": env.String(), "groups.yaml.5": groups.String()}
}

// roff writes text that stands for itself: no line of it is a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
