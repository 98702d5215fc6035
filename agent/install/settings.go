package install

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/units"
)

// Setting is one variable of the environment file.
type Setting struct{ Name, Value string }

// metadataWithin bounds the wait for a metadata service; where there is none, the address
// is not answered.
const metadataWithin = 2 * time.Second

// settings are the steps to agent.env and groups.yaml, and to what further leaders get of them.
func (h Host) settings(ctx context.Context, o Options, client *kube.Client, others shared) ([]Step, error) {
	step, text, err := h.environment(ctx, o, client)
	if err != nil {
		return nil, err
	}
	has, err := h.effective(o.Set)
	if err != nil {
		return nil, err
	}
	steps, err := h.groupsSteps(others, has)
	if err != nil {
		return nil, err
	}
	share, err := h.share(client, others, text, o.Publish)
	return append(append([]Step{step}, steps...), share), err
}

// environment is the step to agent.env, and the text that it will have: the settings of the operator,
// of another leader and those that were found, with each line that is there already left as it is.
func (h Host) environment(ctx context.Context, o Options, client *kube.Client) (step Step, text string, err error) {
	data, err := h.readIf(envFile)
	if err != nil {
		return Step{}, "", err
	}
	if data == nil {
		if data, err = units.Files.ReadFile("agent.env.example"); err != nil {
			return Step{}, "", err // it is compiled in
		}
	}
	vars, err := config.ParseEnvFile(string(data))
	if err != nil {
		return Step{}, "", fmt.Errorf("%s: %w", envFile, err)
	}
	has := map[string]string{}
	for _, v := range append(vars, pairs(o.Set)...) {
		has[v[0]] = cmp.Or(has[v[0]], v[1])
	}
	found, err := detect(ctx, client, has)
	if err != nil {
		return Step{}, "", err
	}
	text = string(data)
	var names []string
	for _, s := range append(slices.Clone(o.Set), found...) {
		after, err := config.SetInEnvFile(text, s.Name, s.Value)
		if err != nil {
			return Step{}, "", err
		}
		if after != text {
			names = append(names, s.shown())
		}
		text = after
	}
	step = h.write("settings", envFile, []byte(text), 0o640)
	if step.do != nil && len(names) > 0 {
		step.Text += ": " + strings.Join(names, ", ")
	}
	return step, text, nil
}

// shown is the setting for a person. The value of another program's variable may be secret.
func (s Setting) shown() string {
	if strings.HasPrefix(s.Name, config.Prefix+"_") {
		return s.Name + "=" + s.Value
	}
	return s.Name
}

func pairs(list []Setting) (out [][2]string) {
	for _, s := range list {
		out = append(out, [2]string{s.Name, s.Value})
	}
	return out
}

// detect finds the settings that has does not name: the cloud, and on AWS the region and
// the cluster's name by the tags of its groups.
func detect(ctx context.Context, client *kube.Client, has map[string]string) ([]Setting, error) {
	const (
		name      = config.Prefix + "_PROVIDER"
		awsName   = config.Prefix + "_AWS_CLUSTER_NAME"
		awsRegion = config.Prefix + "_AWS_REGION"
	)
	var out []Setting
	cloud := has[name]
	if cloud == "" {
		switch metadata(ctx) {
		case "aws":
			cloud = "asg"
			out = append(out, Setting{name, cloud})
		case "openstack":
			return nil, fmt.Errorf("this is a server of OpenStack: say which provider scales it: --set %s=nova or magnum (docs/providers)", name)
		default:
			return nil, fmt.Errorf("no metadata service tells the cloud: name it with --set %s=asg, nova, magnum, clusterapi or externalgrpc", name)
		}
	}
	if cloud != "asg" || has[awsName]+has[config.Prefix+"_AWS_GROUPS"]+has[config.Prefix+"_AWS_AUTO_DISCOVERY"] != "" {
		return out, nil
	}
	region, clusters, err := asg.Clusters(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for Auto Scaling groups: %w; or name the cluster with --set %s=NAME", err, awsName)
	case has[awsRegion] == "":
		out = append(out, Setting{awsRegion, region})
	}
	if len(clusters) > 1 {
		if own := clusterName(ctx, client); slices.Contains(clusters, own) {
			clusters = []string{own}
		}
	}
	switch len(clusters) {
	case 1:
		return append(out, Setting{awsName, clusters[0]}), nil
	case 0:
		return nil, fmt.Errorf("no Auto Scaling group of %s has the tag k8s.io/cluster-autoscaler/enabled: tag it, with k8s.io/cluster-autoscaler/NAME beside it, or name groups with --set %s_AWS_GROUPS=MIN:MAX:NAME", region, config.Prefix)
	}
	return nil, fmt.Errorf("the Auto Scaling groups of %s belong to the clusters %s: name one with --set %s=NAME", region, strings.Join(clusters, ", "), awsName)
}

// clusterName is kubeadm's, empty where it cannot be read.
func clusterName(ctx context.Context, client *kube.Client) string {
	m, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	var c struct{ ClusterName string }
	if yaml.Unmarshal([]byte(m.Data["ClusterConfiguration"]), &c) != nil {
		return ""
	}
	return c.ClusterName
}

// metadata asks the link-local metadata service what cloud this is; empty: nobody answers.
func metadata(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, metadataWithin)
	defer cancel()
	base := strings.TrimRight(cmp.Or(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254"), "/")
	for _, c := range []struct{ cloud, method, path string }{
		{"openstack", http.MethodGet, "/openstack/latest/meta_data.json"}, {"aws", http.MethodPut, "/latest/api/token"},
	} {
		req, err := http.NewRequestWithContext(ctx, c.method, base+c.path, nil) // #nosec G704 -- root names the address
		if err != nil {
			return ""
		}
		req.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", "60")
		direct := http.Client{Transport: &http.Transport{}} // never through a proxy
		resp, err := direct.Do(req)                         // #nosec G704
		if err != nil {
			return ""
		}
		_ = resp.Body.Close() // the status is the answer
		if resp.StatusCode == http.StatusOK {
			return c.cloud
		}
	}
	return ""
}
