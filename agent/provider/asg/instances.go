package asg

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/lifecycle"
)

// groupTag is set by EC2 Auto Scaling on every machine of a group; the prefix
// "aws:" cannot be written by anyone else, so it is proof of where a machine
// belongs or belonged.
const groupTag = "aws:autoscaling:groupName"

// valuesPerFilter is EC2's limit of values in one filter.
const valuesPerFilter = 200

// machine is what EC2 tells of one machine.
type machine struct {
	instance cluster.Instance
	state    ec2types.InstanceStateName
	spot     bool // bought on the spot market
	image    string
	subnet   string
}

// settled reports whether no change of the machine is under way.
func (m machine) settled() bool {
	return m.state == ec2types.InstanceStateNameRunning || m.state == ec2types.InstanceStateNameStopped || m.state == ec2types.InstanceStateNameTerminated
}

// readInstances fills in the instances of all groups. A chunk that could not be read whole
// makes its groups stale.
func (p *Provider) readInstances(ctx context.Context, readings []*reading) []error {
	var errs []error
	wanted := readings
	if provider.Only(ctx) != nil {
		wanted = slices.DeleteFunc(slices.Clone(readings), p.members.recall)
	} else if age := provider.Repeated(ctx); age > 0 {
		wanted, errs = p.repeatInstances(ctx, readings, age)
	}
	for chunk := range slices.Chunk(wanted, valuesPerFilter) {
		at := p.now()
		machines, err := p.machines(ctx, chunk)
		errs = append(errs, unread(chunk, err)...)
		for _, r := range chunk {
			r.machines = machines[r.group.ID]
			p.members.keep(r, at, err == nil)
		}
	}
	if provider.Only(ctx) == nil {
		p.members.retain(readings)
	}
	for _, r := range readings {
		r.group.Instances = p.instancesOf(r.source, r.machines)
		for _, m := range r.machines {
			r.spot = r.spot || m.spot
		}
	}
	return errs
}

// unread makes the groups of a chunk stale, if err tells that it was not read whole.
func unread(chunk []*reading, err *provider.Error) []error {
	if err == nil {
		return nil
	}
	var errs []error
	for _, r := range chunk {
		own := *err
		own.Group = r.group.ID
		errs = append(errs, &own)
		r.stale(&own)
	}
	return errs
}

// notRunning are the states by which a repeated read finds the machines that do not run.
var notRunning = []string{string(ec2types.InstanceStateNamePending), string(ec2types.InstanceStateNameShuttingDown), string(ec2types.InstanceStateNameTerminated),
	string(ec2types.InstanceStateNameStopping), string(ec2types.InstanceStateNameStopped)}

// repeatInstances fills in the machines of groups at rest as far as provider.WithRepeated
// allows, and returns the groups whose machines are to be described. Descriptions are by far
// the largest answers of AWS. Of groups at rest EC2 lists those machines alone that do not
// run: so each change of a state is seen at once, and names and addresses are repeated.
func (p *Provider) repeatInstances(ctx context.Context, readings []*reading, age time.Duration) (wanted []*reading, errs []error) {
	rest, wanted := p.members.atRest(readings, p.now(), namesTimes*age)
	for chunk := range slices.Chunk(rest, valuesPerFilter) {
		at := p.now()
		others, err := p.machines(ctx, chunk, notRunning...)
		errs = append(errs, unread(chunk, err)...)
		for _, r := range chunk {
			switch {
			case err != nil:
				r.machines = others[r.group.ID]
				p.members.keep(r, at, false)
			case !p.members.repeat(r, at, others[r.group.ID]):
				wanted = append(wanted, r)
			}
		}
	}
	return wanted, errs
}

// machines lists the machines that carry the groups' tag, by group and EC2 id,
// those still listed as terminated included. states narrows them to those states.
func (p *Provider) machines(ctx context.Context, chunk []*reading, states ...string) (map[cluster.GroupID]map[string]machine, *provider.Error) {
	names := make([]string, len(chunk))
	out := make(map[cluster.GroupID]map[string]machine, len(chunk))
	for i, r := range chunk {
		names[i] = string(r.group.ID)
		out[r.group.ID] = map[string]machine{}
	}
	filters := []ec2types.Filter{{Name: aws.String("tag:" + groupTag), Values: escapeFilter(names)}}
	if len(states) > 0 {
		filters = append(filters, ec2types.Filter{Name: aws.String("instance-state-name"), Values: states})
	}
	pages := ec2.NewDescribeInstancesPaginator(p.client, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(1000)})
	for page := 1; pages.HasMorePages(); page++ {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			e := awsapi.Classify("read", "", awsapi.ActionDescribeInstances, err)
			e.Err = fmt.Errorf("page %d of the instances: %w", page, e.Err)
			return out, e
		}
		for i := range answer.Reservations {
			for j := range answer.Reservations[i].Instances {
				m := &answer.Reservations[i].Instances[j]
				if of := out[groupOf(m)]; of != nil {
					of[aws.ToString(m.InstanceId)] = p.machine(m)
				}
			}
		}
	}
	return out, nil
}

// escapeFilter keeps EC2 from reading * and ? in a group's name as wildcards.
func escapeFilter(names []string) []string {
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)
	for i, name := range names {
		names[i] = escape.Replace(name)
	}
	return names
}

func groupOf(m *ec2types.Instance) cluster.GroupID {
	for _, t := range m.Tags {
		if aws.ToString(t.Key) == groupTag {
			return cluster.GroupID(aws.ToString(t.Value))
		}
	}
	return ""
}

// instancesOf joins the answers of Auto Scaling and EC2 about one group's machines.
func (p *Provider) instancesOf(source asgtypes.AutoScalingGroup, machines map[string]machine) []cluster.Instance {
	var out []cluster.Instance
	member := map[string]bool{}
	for _, m := range source.Instances {
		id := aws.ToString(m.InstanceId)
		life := m.LifecycleState
		if lifecycle.Warm(life) {
			continue // a warm pool's machine is not part of the group until it enters service
		}
		member[id] = true
		machine, listed := machines[id]
		in := machine.own()
		in.ID = providerID(aws.ToString(m.AvailabilityZone), id)
		in.Zone = aws.ToString(m.AvailabilityZone)
		in.Phase = lifecycle.Phase(life, machine.state, listed)
		in.Member = in.Phase != cluster.PhaseGone && life != asgtypes.LifecycleStateDetaching && life != asgtypes.LifecycleStateDetached
		in.Protected = aws.ToBool(m.ProtectedFromScaleIn)
		if life == asgtypes.LifecycleStateTerminatingWait && in.Phase == cluster.PhaseDeleting {
			in.Interruption = &cluster.Interruption{Why: "Auto Scaling ends it, and a lifecycle hook lets it wait: " + string(life)}
		}
		if !listed {
			// EC2 lists a new machine some seconds late, or never: Created stays zero, and a
			// wait for the machine counts from its first sight.
			in.Type = aws.ToString(m.InstanceType)
		}
		out = append(out, in)
	}
	for id, machine := range machines {
		if member[id] {
			continue
		}
		in := machine.own()
		in.ID = providerID(in.Zone, id)
		in.Phase = lifecycle.Phase("", machine.state, true)
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b cluster.Instance) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

func stateOf(m ec2types.Instance) ec2types.InstanceStateName {
	if m.State == nil {
		return ""
	}
	return m.State.Name
}

// providerID is the form that the AWS cloud provider and our userdata write.
func providerID(zone, id string) cluster.InstanceID {
	return cluster.InstanceID("aws:///" + zone + "/" + id)
}

// parseProviderID returns the EC2 id of "aws:///zone/i-...", or false.
func parseProviderID(id cluster.InstanceID) (string, bool) {
	rest, ok := strings.CutPrefix(string(id), "aws:///")
	if !ok {
		return "", false
	}
	_, short, ok := strings.Cut(rest, "/")
	if !ok || !strings.HasPrefix(short, "i-") || strings.Contains(short, "/") {
		return "", false
	}
	return short, true
}

// own is EC2's part of an instance, as a copy that belongs to the caller.
func (m machine) own() cluster.Instance {
	in := m.instance
	in.NodeNames, in.Names, in.Addresses = slices.Clone(in.NodeNames), slices.Clone(in.Names), slices.Clone(in.Addresses)
	return in
}

func (p *Provider) machine(m *ec2types.Instance) machine {
	return machine{instance: p.instance(m), state: stateOf(*m), spot: spotMachine(m), image: aws.ToString(m.ImageId), subnet: aws.ToString(m.SubnetId)}
}

// instance converts EC2's part.
func (p *Provider) instance(m *ec2types.Instance) cluster.Instance {
	in := cluster.Instance{Created: aws.ToTime(m.LaunchTime), Type: string(m.InstanceType), Runs: stateOf(*m) == ec2types.InstanceStateNameRunning}
	if m.Placement != nil {
		in.Zone = aws.ToString(m.Placement.AvailabilityZone)
	}
	in.NodeNames, in.Names = names(m, p.region)
	in.Addresses = addresses(m, p.cfg.SecondaryAddresses)
	return in
}

// names are the DNS names that AWS itself gives to a machine (rules R11 and R13).
// A Node may be called by the private DNS name, its first label (the host name of
// images that cut the domain, kubeadm's default), or the instance ID. Names known
// only by formula follow kops' awsbootstrap/names.go and cloud-provider-aws'
// page of prerequisites.
func names(m *ec2types.Instance, region string) (nodeNames, all []string) {
	id := aws.ToString(m.InstanceId)
	if id == "" {
		return nil, nil
	}
	domain := region + ".compute.internal"
	if region == "us-east-1" {
		domain = "ec2.internal"
	}
	byID := []string{id, id + "." + domain}
	var byIP []string
	if ip, err := netip.ParseAddr(aws.ToString(m.PrivateIpAddress)); err == nil && ip.Is4() {
		short := "ip-" + strings.ReplaceAll(ip.String(), ".", "-")
		byIP = []string{short, short + "." + domain}
	}
	private := strings.ToLower(aws.ToString(m.PrivateDnsName))
	short, _, _ := strings.Cut(private, ".")

	nodeNames = append(nodeNames, private, short)
	nodeNames = append(nodeNames, byID...)
	if o := m.PrivateDnsNameOptions; o == nil || o.HostnameType != ec2types.HostnameTypeResourceName {
		nodeNames = append(nodeNames, byIP...)
	}
	all = append(all, nodeNames...)
	all = append(all, byIP...)
	all = append(all, strings.ToLower(aws.ToString(m.PublicDnsName)))
	for _, face := range m.NetworkInterfaces {
		if attached(face) && face.Association != nil {
			all = append(all, strings.ToLower(aws.ToString(face.Association.PublicDnsName)))
		}
	}
	return set(nodeNames), set(all)
}

// set sorts, and drops empty and repeated strings.
func set(list []string) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// attached reports whether an interface is attached to the machine now.
func attached(face ec2types.InstanceNetworkInterface) bool {
	return face.Attachment == nil || face.Attachment.Status == "" || face.Attachment.Status == ec2types.AttachmentStatusAttached
}

// addresses are the IP addresses of the machine's attached interfaces (rule R14):
// of each interface the primary private address, its public, elastic or carrier
// address and its primary IPv6 address. Secondary addresses are left out unless
// secondary is set: a CNI hands them to pods, and a pod must not get a node's
// certificate. Prefixes, which are whole ranges of them, are always left out.
func addresses(m *ec2types.Instance, secondary bool) []netip.Addr {
	var out []netip.Addr
	add := func(s *string) {
		if a, err := netip.ParseAddr(aws.ToString(s)); err == nil {
			out = append(out, a.Unmap().WithZone(""))
		}
	}
	public := func(a *ec2types.InstanceNetworkInterfaceAssociation) {
		if a != nil {
			add(a.PublicIp)
			add(a.CarrierIp)
		}
	}
	add(m.PrivateIpAddress)
	add(m.PublicIpAddress)
	add(m.Ipv6Address)
	for _, face := range m.NetworkInterfaces {
		if !attached(face) {
			continue
		}
		add(face.PrivateIpAddress)
		public(face.Association)
		for _, v6 := range face.Ipv6Addresses {
			if secondary || aws.ToBool(v6.IsPrimaryIpv6) || len(face.Ipv6Addresses) == 1 {
				add(v6.Ipv6Address)
			}
		}
		for _, v4 := range face.PrivateIpAddresses {
			if secondary {
				add(v4.PrivateIpAddress)
				public(v4.Association)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
