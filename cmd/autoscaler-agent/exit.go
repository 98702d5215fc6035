package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the command failed, or a check found an error
	exitUsage  = 2 // the command line is wrong
	// exitConfig is EX_CONFIG of sysexits.h: the unit is not started again before the
	// configuration is corrected (RestartPreventExitStatus=).
	exitConfig = 78
)

// exitCode ends a command with a code; the command has printed why.
type exitCode int

func (c exitCode) Error() string { return "exit code " + strconv.Itoa(int(c)) }

// usageError is a command line that is refused; the text names the remedy.
type usageError struct{ command, text string }

func (e usageError) Error() string { return e.command + ": " + e.text }

func usagef(c *cobra.Command, format string, args ...any) error {
	return usageError{c.CommandPath(), fmt.Sprintf(format, args...)}
}

// failure is what went wrong in one step of a command; the error may be several,
// joined.
type failure struct {
	step string
	err  error
	code int
}

func (f failure) Error() string { return f.step + ": " + f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// failed wraps what went wrong in a step ("configuration", "plan"). No step is named
// where the error says enough.
func failed(step string, err error) error { return failure{step, err, exitFailed} }

// misused is an error in what the command line says, found after it was parsed.
func misused(step string, err error) error { return failure{step, err, exitUsage} }

// printError prints err for a person and returns its exit code: one line for one finding.
func printError(errout io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	f, ok := errors.AsType[failure](err)
	if !ok { // a usageError, or cobra's own
		fmt.Fprintln(errout, err)
		return exitUsage
	}
	head := "autoscaler-agent: "
	if f.step != "" {
		head += f.step + ": "
	}
	findings := config.Flatten(f.err)
	if len(findings) == 1 {
		fmt.Fprintf(errout, "%s%s\n", head, oneLine(findings[0]))
		return f.code
	}
	fmt.Fprintln(errout, head[:len(head)-1])
	for _, finding := range findings {
		fmt.Fprintf(errout, "  %s\n", oneLine(finding))
	}
	return f.code
}

// oneLine is an error's text without line breaks: some libraries write paragraphs. Where a file may not
// be opened, it names the remedy.
func oneLine(err error) string {
	text := err.Error()
	if strings.ContainsAny(text, "\r\n") {
		text = strings.Join(strings.Fields(text), " ")
	}
	if errors.Is(err, fs.ErrPermission) && !strings.Contains(text, "use sudo") {
		text += " (use sudo, or name a file that you may open)"
	}
	return text
}

// flagError refuses a command line with what pflag says of a flag.
func flagError(c *cobra.Command, err error) error {
	return usagef(c, "%s", flagvalue.Fault(c, err))
}

// ends is err, or else the exit code of what has been printed already.
func ends(code int, err error) error {
	if err != nil || code == exitOK {
		return err
	}
	return exitCode(code)
}
