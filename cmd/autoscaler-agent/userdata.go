package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/agent/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

const userdataUsage = `Make what a launch template gives its machines: a shell script that installs what
is missing and joins the cluster.

Usage:
  autoscaler-agent userdata render [flags]

Examples:
  # The join information that the running agent publishes, to a file that only
  # you can read
  autoscaler-agent userdata render -o worker.sh

  # A group for batch work
  autoscaler-agent userdata render --label example.net/pool=batch \
      --taint example.net/dedicated=batch:NoSchedule -o batch.sh

  # For servers of OpenStack: the agent puts a token of its own into each
  autoscaler-agent userdata render --cloud openstack -o /etc/autoscaler-agent/worker.sh

  # A new version of the launch template
  aws ec2 create-launch-template-version --launch-template-name workers \
      --source-version '$Latest' \
      --launch-template-data "{\"UserData\":\"$(base64 -w0 worker.sh)\"}"

The output holds the join token. What the kubelets keep back is taken from
AUTOSCALER_KUBELET_* in the agent's own configuration (--agent-env-file and the
environment), because the agent computes from it what a new machine can hold. A flag
that says something else wins, with a warning.

Flags:
`

// userdataCommand is `autoscaler-agent userdata`. It returns the exit code: 2 for a
// command line that cannot be understood, 1 for values that cannot be used.
func userdataCommand(_ context.Context, args []string, out, errout io.Writer) int {
	if len(args) == 0 {
		newUserdataFlags(errout).Usage()
		return 2
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		newUserdataFlags(out).Usage()
		return 0
	case "render":
		return userdataRender(args[1:], out, errout)
	}
	fmt.Fprintf(errout, "autoscaler-agent userdata: unknown command %q: want render\n", args[0])
	return 2
}

// userdataFlags are the flags of userdata render.
type userdataFlags struct {
	*flag.FlagSet
	envFile, agentEnvFile, cloud, version, endpoint, dns, output string

	sharedToken bool

	labels   labelFlag
	taints   taintFlag
	reserved cluster.Reservation
}

func newUserdataFlags(out io.Writer) *userdataFlags {
	f := &userdataFlags{FlagSet: flag.NewFlagSet("autoscaler-agent userdata render", flag.ContinueOnError), reserved: userdata.DefaultReservation()}
	f.SetOutput(out)
	f.Usage = func() {
		fmt.Fprint(f.Output(), userdataUsage)
		f.PrintDefaults()
	}
	f.StringVar(&f.envFile, "env-file", "/etc/worker.env", "`file` with JOIN_TOKEN, JOIN_CERT_HASH, JOIN_ENDPOINT and JOIN_KUBERNETES_VERSION")
	f.StringVar(&f.agentEnvFile, "agent-env-file", "", "`file` with the agent's AUTOSCALER_KUBELET_* settings (default "+agentEnvFile+" where there is one)")
	f.StringVar(&f.cloud, "cloud", "aws", "`cloud` that the machines run in: "+strings.Join(userdata.Clouds(), " or "))
	f.BoolVar(&f.sharedToken, "shared-token", false, "on openstack, write the published join token into the user data; without it the agent mints a token for each server")
	f.StringVar(&f.version, "kubernetes-version", "", "`version` to install where it is missing, for example v1.36.3 (default JOIN_KUBERNETES_VERSION)")
	f.StringVar(&f.endpoint, "endpoint", "", "`host:port` of the API server (default JOIN_ENDPOINT)")
	f.StringVar(&f.dns, "cluster-dns", "", "comma-separated `addresses` of the cluster's DNS (default: the cluster's own setting)")
	f.StringVar(&f.output, "o", "", "write to `file`, with mode 0600, instead of standard output")
	f.Var(&f.labels, "label", "Node label `key=value`; may be repeated")
	f.Var(&f.taints, "taint", "Node taint `key[=value]:effect`; may be repeated")
	f.Int64Var(&f.reserved.MaxPods, "max-pods", f.reserved.MaxPods, "most `pods` on a machine")
	f.Var(amountFlag{&f.reserved.Kube}, "kube-reserved", "`amounts` kept back for the kubelet, as cpu=100m,memory=256Mi")
	f.Var(amountFlag{&f.reserved.System}, "system-reserved", "`amounts` kept back for the system")
	f.Var(evictionFlag{&f.reserved}, "eviction-hard", "`amounts` below which the kubelet evicts, as memory.available=100Mi,nodefs.available=10%")
	return f
}

func userdataRender(args []string, out, errout io.Writer) int {
	f := newUserdataFlags(errout)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case f.NArg() > 0:
		fmt.Fprintf(errout, "autoscaler-agent userdata render: unexpected argument %q\n", f.Arg(0))
		return 2
	}
	differs, err := f.reserve()
	var script []byte
	if err == nil {
		script, err = f.render()
	}
	for _, text := range differs {
		fmt.Fprintf(errout, "autoscaler-agent userdata render: warning: %s\n", text)
	}
	if err == nil && f.output != "" {
		_, err = atomicfile.Write(f.output, script, 0o600)
	} else if err == nil {
		_, err = out.Write(script)
	}
	if err != nil {
		fmt.Fprintf(errout, "autoscaler-agent userdata render: %v\n", err)
		return 1
	}
	return 0
}

// agentEnvFile is where the unit's settings are.
const agentEnvFile = "/etc/autoscaler-agent/agent.env"

// reserve takes what no flag said from the agent's own configuration, so that the
// kubelets keep back what the agent counts with. differs names the flags that say
// something else.
func (f *userdataFlags) reserve() (differs []string, err error) {
	file := f.agentEnvFile
	if file == "" {
		if _, err := os.Stat(agentEnvFile); err == nil {
			file = agentEnvFile
		}
	}
	if file != "" {
		if err := agent.LoadEnvFile(file); err != nil {
			return nil, fmt.Errorf("read the agent's kubelet settings: %w", err)
		}
	}
	kubelet, err := agent.LoadKubelet()
	if err != nil {
		return nil, err
	}
	asked, theirs := f.reserved, kubelet.Reservation()
	f.reserved = theirs
	f.Visit(func(given *flag.Flag) {
		switch given.Name {
		case "max-pods":
			f.reserved.MaxPods = asked.MaxPods
		case "kube-reserved":
			f.reserved.Kube = asked.Kube
		case "system-reserved":
			f.reserved.System = asked.System
		case "eviction-hard":
			f.reserved.Eviction, f.reserved.EvictionStoragePercent = asked.Eviction, asked.EvictionStoragePercent
		default:
			return
		}
		if !reflect.DeepEqual(f.reserved, theirs) {
			variable := "AUTOSCALER_KUBELET_" + strings.ToUpper(strings.ReplaceAll(given.Name, "-", "_"))
			differs = append(differs, fmt.Sprintf("--%s is not what the agent counts with: set %s in the agent's configuration to the same", given.Name, variable))
		}
		theirs = f.reserved
	})
	return differs, nil
}

func (f *userdataFlags) render() ([]byte, error) {
	join, err := readWorkerEnv(f.envFile)
	if err != nil {
		return nil, err
	}
	if f.version != "" {
		join["JOIN_KUBERNETES_VERSION"] = f.version
	}
	if f.endpoint != "" {
		join["JOIN_ENDPOINT"] = f.endpoint
	}
	token := join["JOIN_TOKEN"]
	if userdata.TokenPerServer(f.cloud) && !f.sharedToken {
		token = userdata.TokenPlaceholder
	}
	spec := userdata.Spec{
		Cloud:             f.cloud,
		KubernetesVersion: join["JOIN_KUBERNETES_VERSION"],
		Join: userdata.Join{
			Endpoint:     join["JOIN_ENDPOINT"],
			Token:        token,
			CACertHashes: splitList(join["JOIN_CERT_HASH"]),
		},
		Reservation: f.reserved,
		Labels:      f.labels,
		Taints:      f.taints,
		ClusterDNS:  splitList(f.dns),
	}
	return userdata.Render(spec)
}

// readWorkerEnv reads the file that the agent publishes. Names that it does not know
// are left alone: people put their own variables into the seeds' file.
func readWorkerEnv(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read join information: %w: start the agent, which publishes it, or name another file with --env-file", err)
	}
	vars := map[string]string{}
	for lines, n := bufio.NewScanner(bytes.NewReader(text)), 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !ok {
			return nil, fmt.Errorf("read join information: %s line %d: want NAME=VALUE", file, n)
		}
		vars[name] = unquote(strings.TrimSpace(value))
	}
	for _, name := range []string{"JOIN_TOKEN", "JOIN_CERT_HASH", "JOIN_ENDPOINT"} {
		if vars[name] == "" {
			return nil, fmt.Errorf("read join information: %s: %s is missing: wait until the agent has published it (journalctl -u autoscaler-agent), or write it by hand", file, name)
		}
	}
	return vars, nil
}

// unquote takes one pair of quotes off; join information holds no character that
// would need more.
func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

type labelFlag map[string]string

func (l *labelFlag) String() string { return "" }

func (l *labelFlag) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("want key=value")
	}
	if *l == nil {
		*l = labelFlag{}
	}
	if _, twice := (*l)[key]; twice {
		return fmt.Errorf("label %s is given twice", key)
	}
	(*l)[key] = value
	return nil
}

type taintFlag []cluster.Taint

func (t *taintFlag) String() string { return "" }

func (t *taintFlag) Set(s string) error {
	rest, effect, ok := strings.Cut(s, ":")
	if !ok {
		return errors.New("want key[=value]:effect")
	}
	key, value, _ := strings.Cut(rest, "=")
	*t = append(*t, cluster.Taint{Key: key, Value: value, Effect: effect})
	return nil
}

// amountFlag is "cpu=100m,memory=256Mi,ephemeral-storage=1Gi"; what is given
// replaces the default whole.
type amountFlag struct{ r *cluster.Resources }

func (a amountFlag) String() string {
	if a.r == nil {
		return ""
	}
	return fmt.Sprintf("cpu=%dm,memory=%s", a.r.MilliCPU, resource.NewQuantity(a.r.Memory, resource.BinarySI))
}

func (a amountFlag) Set(s string) error {
	r, err := parseAmounts(s)
	if err == nil {
		*a.r = r
	}
	return err
}

// parseAmounts rounds up, so that no more is promised than the kubelet will keep.
func parseAmounts(s string) (cluster.Resources, error) {
	var r cluster.Resources
	for _, part := range splitList(s) {
		name, value, _ := strings.Cut(part, "=")
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return r, fmt.Errorf("%s: want NAME=QUANTITY, for example memory=256Mi: %w", part, err)
		}
		switch name {
		case "cpu":
			r.MilliCPU = q.MilliValue()
		case "memory":
			r.Memory = q.Value()
		case "ephemeral-storage":
			r.EphemeralStorage = q.Value()
		default:
			return r, fmt.Errorf("%s: only cpu, memory and ephemeral-storage can be reserved", part)
		}
	}
	return r, nil
}

type evictionFlag struct{ r *cluster.Reservation }

func (e evictionFlag) String() string {
	if e.r == nil {
		return ""
	}
	return fmt.Sprintf("memory.available=%s,nodefs.available=%d%%", resource.NewQuantity(e.r.Eviction.Memory, resource.BinarySI), e.r.EvictionStoragePercent)
}

func (e evictionFlag) Set(s string) error {
	var r cluster.Reservation
	for _, part := range splitList(s) {
		name, value, _ := strings.Cut(part, "=")
		percent, isPercent := strings.CutSuffix(value, "%")
		if !slices.Contains([]string{"memory.available", "nodefs.available"}, name) {
			return fmt.Errorf("%s: only memory.available and nodefs.available can be set", part)
		}
		if isPercent && name == "nodefs.available" {
			n, err := strconv.ParseInt(percent, 10, 64)
			if err != nil {
				return fmt.Errorf("%s: want a whole percentage", part)
			}
			r.EvictionStoragePercent = n
			continue
		}
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("%s: want NAME=QUANTITY: %w", part, err)
		}
		if name == "memory.available" {
			r.Eviction.Memory = q.Value()
		} else {
			r.Eviction.EphemeralStorage = q.Value()
		}
	}
	e.r.Eviction, e.r.EvictionStoragePercent = r.Eviction, r.EvictionStoragePercent
	return nil
}
