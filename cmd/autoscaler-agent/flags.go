package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
)

// noArgs refuses arguments beside the flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(c, "%q is one argument too many: %s takes flags only", args[0], c.CommandPath())
	}
	return nil
}

// fixed completes a value that is one of a few words.
func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// words completes the value of a flag, and lets it be nothing else.
func words(c *cobra.Command, flag string, list ...string) {
	complete(c, flag, fixed(list...))
	flagvalue.Limit(c, flag, list)
}

// complete registers how the value of a flag is completed.
func complete(c *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // the flag was declared one line above
	}
}

func envFileFlag(c *cobra.Command) *string {
	return c.Flags().String("env-file", "", "read settings from this `file` (default "+config.EnvFile+" where it exists);\nvariables of the environment win")
}

// outputFlag declares --output.
func outputFlag(c *cobra.Command) *string {
	format := flagvalue.Output("table")
	c.Flags().VarP(&format, "output", "o", "output `format`: table, json or yaml")
	words(c, "output", flagvalue.Outputs...)
	return (*string)(&format)
}

// printData prints v where the format is one for programs; done tells that it is.
func printData(out io.Writer, format string, v any) (done bool, err error) {
	var b []byte
	switch format {
	case "json":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(v)
	case "yaml":
		if b, err = report.YAML(v); err == nil {
			_, err = out.Write(b)
		}
	default:
		return false, nil
	}
	if err != nil {
		err = failed("write", err)
	}
	return true, err
}

// load reads the configuration, from the environment file first.
func load(envFile string) (config.Config, error) { return config.LoadWith(envFile) }
