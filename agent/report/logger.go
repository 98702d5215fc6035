package report

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
	"k8s.io/klog/v2"
)

// identifier is SYSLOG_IDENTIFIER: journal.Send sets none by itself, and
// `journalctl -t` would miss the lines.
const identifier = "autoscaler-agent"

// NewLogger returns the agent's one logger: native journal fields when stderr is the
// journal, text on errout otherwise. client-go's own log lines are dropped: it
// repeats a lost connection many times a minute, and the agent says it once.
func NewLogger(level string, errout io.Writer) *logrus.Logger {
	klog.SetLogger(klog.Logger{}) // the zero logger is silent; SetOutput leaves errors on stderr
	log := logrus.New()
	if l, err := logrus.ParseLevel(level); err == nil {
		log.SetLevel(l)
	}
	log.SetOutput(errout)
	log.SetFormatter(textFormatter{&logrus.TextFormatter{FullTimestamp: true, DisableColors: true, TimestampFormat: "2006-01-02T15:04:05.000Z07:00"}})
	if native, err := journal.StderrIsJournalStream(); err == nil && native && errout == os.Stderr {
		log.SetOutput(io.Discard)
		log.AddHook(journalHook{fallback: errout})
	}
	return log
}

// textFormatter writes logrus's text without fields that say nothing, or nothing
// that the message does not say.
type textFormatter struct{ *logrus.TextFormatter }

// Format renders one entry.
func (f textFormatter) Format(e *logrus.Entry) ([]byte, error) {
	data := make(logrus.Fields, len(e.Data))
	for k, v := range e.Data {
		text := fmt.Sprint(v)
		if text == "" || (k == "why" || k == "error") && strings.Contains(e.Message, text) {
			continue
		}
		data[k] = v
	}
	short := *e
	short.Data = data
	return f.TextFormatter.Format(&short)
}

// sentence is the message as `journalctl` shows it, which leaves out all fields: what
// it is about, why, and by which rule are added where the message does not say them.
func sentence(e *logrus.Entry) string {
	text := e.Message
	field := func(key, before, after string) {
		if v := strings.TrimSpace(fmt.Sprint(e.Data[key])); e.Data[key] != nil && v != "" && !strings.Contains(text, v) {
			text += before + v + after
		}
	}
	for _, noun := range []string{"group", "node", "instance", "pod", "csr"} {
		field(noun, " "+noun+"=", "")
	}
	if e.Data["rule"] != nil && !strings.Contains(text, fmt.Sprintf("[%v]", e.Data["rule"])) {
		text += fmt.Sprintf(" [%v]", e.Data["rule"])
	}
	field("why", ": ", "")
	field("error", ": ", "")
	return printable(text)
}

// printable is a text that journalctl shows as one line, whatever a cloud, a cluster or a requester has put in it: a
// line break would begin what looks like another entry, and journalctl shows an entry with other control
// characters as "blob data".
func printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		rest, more := strings.CutSuffix(line, "\n")
		quoted := strconv.Quote(rest)
		out.WriteString(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`))
		if more && out.Len() > 0 {
			out.WriteString("; ")
		}
	}
	return strings.TrimSuffix(out.String(), "; ")
}

// journalHook sends each entry to journald with its fields upper-case.
type journalHook struct{ fallback io.Writer }

func (journalHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h journalHook) Fire(e *logrus.Entry) error {
	fields := map[string]string{"SYSLOG_IDENTIFIER": identifier}
	if id := messageID(e); id != "" {
		fields["MESSAGE_ID"] = id
	}
	repeated := map[string]Names{}
	for k, v := range e.Data {
		if names, several := v.(Names); several {
			repeated[fieldName(k)] = names
		} else if text := printable(fmt.Sprint(v)); text != "" {
			fields[fieldName(k)] = text
		}
	}
	if len(repeated) > 0 && sendRepeated(sentence(e), priority(e.Level), fields, repeated) == nil {
		return nil
	}
	for k, names := range repeated {
		fields[k] = names.String()
	}
	if err := journal.Send(sentence(e), priority(e.Level), fields); err != nil {
		_, err = fmt.Fprintf(h.fallback, "%s %v\n", e.Message, fields)
		return err
	}
	return nil
}

// fieldName makes a journal field name: upper-case letters, digits and underscores,
// not starting with an underscore or a digit.
func fieldName(key string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
	if name = strings.TrimLeft(name, "_0123456789"); name == "" {
		return "FIELD"
	}
	return name
}

func priority(l logrus.Level) journal.Priority {
	switch l {
	case logrus.PanicLevel, logrus.FatalLevel:
		return journal.PriCrit
	case logrus.ErrorLevel:
		return journal.PriErr
	case logrus.WarnLevel:
		return journal.PriWarning
	case logrus.InfoLevel:
		return journal.PriInfo
	}
	return journal.PriDebug
}
