package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
)

// newFlags makes a flag set whose help shows what the command is for and examples.
func newFlags(name, about, examples string, errout io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(errout)
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "%s\n\nUsage:\n  autoscaler-agent %s [flags]\n\nFlags:\n", about, name)
		fs.PrintDefaults()
		fmt.Fprintf(fs.Output(), "\nExamples:\n%s", examples)
	}
	return fs
}

// parse parses args; done tells that the command is over with code (help was asked
// for, or the arguments are wrong). Help goes to out, complaints to errout.
func parse(fs *flag.FlagSet, args []string, out, errout io.Writer) (code int, done bool) {
	names, code, done := parseNames(fs, args, out, errout)
	if !done && len(names) > 0 {
		fmt.Fprintf(errout, "autoscaler-agent %s: %q is one argument too many\n", fs.Name(), names[0])
		return exitUsage, true
	}
	return code, done
}

// parseNames is parse for commands that take names, which may stand before, between
// and after the flags.
func parseNames(fs *flag.FlagSet, args []string, out, errout io.Writer) (names []string, code int, done bool) {
	for _, a := range args {
		if a == "--" {
			break
		}
		if a == "-h" || a == "-help" || a == "--help" {
			fs.SetOutput(out)
		}
	}
	for {
		switch err := fs.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, exitOK, true
		case err != nil:
			return nil, exitUsage, true
		}
		if fs.NArg() == 0 {
			return names, exitOK, false
		}
		if read := len(args) - fs.NArg(); read > 0 && args[read-1] == "--" {
			return append(names, fs.Args()...), exitOK, false
		}
		names, args = append(names, fs.Arg(0)), fs.Args()[1:]
	}
}

func envFileFlag(fs *flag.FlagSet) *string {
	return fs.String("env-file", "", "read settings from this `file`, as systemd reads the unit's EnvironmentFile=")
}

func outputFlag(fs *flag.FlagSet) *string {
	format := "table"
	fs.Func("output", "`format`: table, json or yaml (default table)", func(v string) error {
		if v != "table" && v != "json" && v != "yaml" {
			return errors.New("use table, json or yaml")
		}
		format = v
		return nil
	})
	return &format
}

// printData prints v where the format is one for programs; done tells that it is.
func printData(out io.Writer, format string, v any) (code int, done bool) {
	switch format {
	case "json":
		return printJSON(out, v), true
	case "yaml":
		b, err := report.YAML(v)
		if err == nil {
			_, err = out.Write(b)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "autoscaler-agent: write: %v\n", err)
			return exitFailed, true
		}
		return exitOK, true
	}
	return exitOK, false
}

// load reads the configuration, from the environment file first where one is given.
func load(envFile string) (agent.Config, error) {
	if envFile != "" {
		if err := agent.LoadEnvFile(envFile); err != nil {
			return agent.Config{}, err
		}
	}
	return agent.Load()
}

// complain prints err, one finding a line, and returns the exit code of failure.
func complain(errout io.Writer, what string, err error) int {
	fmt.Fprintf(errout, "autoscaler-agent: %s:\n", what)
	for _, e := range agent.Flatten(err) {
		fmt.Fprintf(errout, "  %v\n", e)
	}
	return exitFailed
}

func printJSON(out io.Writer, v any) int {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		fmt.Fprintf(os.Stderr, "autoscaler-agent: write: %v\n", err)
		return exitFailed
	}
	return exitOK
}
