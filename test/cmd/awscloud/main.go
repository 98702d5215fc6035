// Command awscloud runs the emulated AWS of package test/emulate/cloud/aws for people:
// it prints the environment that points the SDK, the agent or the aws command
// at it, and runs until it is interrupted. It boots no machines, and it
// refuses to listen anywhere but on 127.0.0.1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

const usage = `awscloud runs an emulated AWS (EC2, Auto Scaling, SSM, STS, IMDSv2) on a free
port of 127.0.0.1, prints the environment that leads to it, and runs until
Ctrl-C. Then it prints what its world has come to.

Usage:
  awscloud --group NAME=MIN:MAX:TYPE[:DESIRED] [--group ...] [flags]

Example:
  go run ./cmd/awscloud --group workers=0:10:t3.large --tag k8s.io/cluster-autoscaler/enabled=true

  In another terminal, after pasting the lines that it prints:
  aws autoscaling set-desired-capacity --auto-scaling-group-name workers --desired-capacity 3
  aws ec2 describe-instances --query 'Reservations[].Instances[].[InstanceId,State.Name,PrivateDnsName]'

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "awscloud:", err)
		os.Exit(1)
	}
}

// several is a flag that may be given more than once.
type several []string

func (s *several) String() string     { return strings.Join(*s, " ") }
func (s *several) Set(v string) error { *s = append(*s, v); return nil }

func run(ctx context.Context, args []string, out, log io.Writer) error {
	var groups, tags several
	var userData, zones string
	opts := aws.Options{Log: log}
	flags := flag.NewFlagSet("awscloud", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.Usage = func() { fmt.Fprint(log, usage); flags.PrintDefaults() }
	flags.Var(&groups, "group", "an Auto Scaling group, `NAME=MIN:MAX:TYPE[:DESIRED]`; may be repeated")
	flags.Var(&tags, "tag", "a tag of all groups, `KEY=VALUE`; may be repeated")
	flags.StringVar(&opts.Region, "region", "us-east-1", "the region")
	flags.StringVar(&zones, "zones", "a,b,c", "letters of the region's zones")
	flags.StringVar(&userData, "user-data", "", "`file` with the instances' user data")
	flags.Uint64Var(&opts.Seed, "seed", 0, "seed of everything random; 0 picks one and prints it")
	flags.DurationVar(&opts.LaunchDelay, "launch-delay", time.Second, "from a changed target to a Pending instance")
	flags.DurationVar(&opts.BootDelay, "boot-delay", 5*time.Second, "from Pending to InService")
	flags.DurationVar(&opts.TerminateDelay, "terminate-delay", 5*time.Second, "from shutting-down to terminated")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	opts.Zones = strings.Split(zones, ",")
	data := []byte{}
	if userData != "" {
		var err error
		if data, err = os.ReadFile(userData); err != nil {
			return fmt.Errorf("read user data: %w", err)
		}
	}
	cloud, err := aws.New(opts)
	if err != nil {
		return err
	}
	defer cloud.Close()
	for _, spec := range groups {
		if err := put(cloud, spec, tags, string(data)); err != nil {
			return err
		}
	}
	for _, line := range cloud.Env() {
		fmt.Fprintln(out, "export "+line)
	}
	fmt.Fprintf(log, "awscloud: running with seed %d, %d groups; Ctrl-C ends it\n", cloud.Seed(), len(groups))
	<-ctx.Done()
	fmt.Fprint(log, cloud)
	return nil
}

// put makes a group and its launch template from the form of --group.
func put(cloud *aws.Cloud, spec string, tags []string, userData string) error {
	name, rest, _ := strings.Cut(spec, "=")
	parts := strings.Split(rest, ":")
	if name == "" || len(parts) < 3 || len(parts) > 4 {
		return fmt.Errorf("--group %s: want NAME=MIN:MAX:TYPE[:DESIRED], for example workers=0:10:t3.large", spec)
	}
	low, err := strconv.Atoi(parts[0])
	if err != nil {
		return fmt.Errorf("--group %s: MIN is no number: %s", spec, parts[0])
	}
	high, err := strconv.Atoi(parts[1])
	if err != nil {
		return fmt.Errorf("--group %s: MAX is no number: %s", spec, parts[1])
	}
	desired := low
	if len(parts) == 4 {
		if desired, err = strconv.Atoi(parts[3]); err != nil {
			return fmt.Errorf("--group %s: DESIRED is no number: %s", spec, parts[3])
		}
	}
	if !slices.ContainsFunc(cloud.InstanceTypes(), func(t aws.InstanceType) bool { return t.Name == parts[2] }) {
		return fmt.Errorf("--group %s: there is no instance type %s; aws ec2 describe-instance-types lists those there are", spec, parts[2])
	}
	g := aws.Group{Name: name, Min: low, Max: high, Desired: desired, LaunchTemplate: name, Tags: map[string]string{}}
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		g.Tags[key] = value
	}
	cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: name, InstanceType: parts[2], UserData: userData,
		InstanceProfile: name, HTTPTokens: "required", HopLimit: 2, MetadataTags: true})
	return cloud.PutGroup(g)
}
