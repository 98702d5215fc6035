package asg

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestMembersAndLeftOvers(t *testing.T) {
	p := newProvider(Config{ClusterName: "demo"}, cluster.Reservation{}, "eu-west-1", nil, nil)
	at := time.Unix(1000, 0)
	state := func(id string, s ec2types.InstanceStateName) machine {
		return p.machine(&ec2types.Instance{InstanceId: &id, State: &ec2types.InstanceState{Name: s}, Placement: &ec2types.Placement{AvailabilityZone: aws.String("eu-west-1a")}, LaunchTime: aws.Time(at)})
	}
	member := func(id string, life asgtypes.LifecycleState) asgtypes.Instance {
		return asgtypes.Instance{InstanceId: &id, LifecycleState: life, AvailabilityZone: aws.String("eu-west-1a"), ProtectedFromScaleIn: aws.Bool(true), InstanceType: aws.String("m5.large")}
	}
	got := p.instancesOf(
		asgtypes.AutoScalingGroup{Instances: []asgtypes.Instance{
			member("i-1", "InService"), member("i-2", "Pending"), member("i-3", "Warmed:Stopped"), member("i-4", "Detaching"), member("i-5", "InService")}},
		map[string]machine{"i-1": state("i-1", "running"), "i-4": state("i-4", "running"), "i-5": state("i-5", "terminated"), "i-6": state("i-6", "terminated")})
	var short []string
	for _, i := range got {
		short = append(short, string(i.ID)+" "+string(i.Phase)+map[bool]string{true: " member"}[i.Member])
	}
	want := []string{
		"aws:///eu-west-1a/i-1 running member", "aws:///eu-west-1a/i-2 pending member", "aws:///eu-west-1a/i-4 running",
		"aws:///eu-west-1a/i-5 gone", "aws:///eu-west-1a/i-6 gone",
	}
	if !slices.Equal(short, want) {
		t.Errorf("got  %q\nwant %q", short, want)
	}
	if !got[1].Created.IsZero() || got[1].Type != "m5.large" || !got[1].Protected {
		t.Errorf("a machine that EC2 does not list yet: %+v", got[1])
	}
}

func TestNamesOfAnInstance(t *testing.T) {
	base := ec2types.Instance{
		InstanceId: aws.String("i-0abc"), PrivateIpAddress: aws.String("172.16.1.9"),
		PrivateDnsName: aws.String("ip-172-16-1-9.eu-west-1.compute.internal"),
	}
	byName := base
	byName.PrivateDnsName = aws.String("i-0abc.eu-west-1.compute.internal")
	byName.PublicDnsName = aws.String("ec2-203-0-113-7.eu-west-1.compute.amazonaws.com")
	byName.PrivateDnsNameOptions = &ec2types.PrivateDnsNameOptionsResponse{HostnameType: ec2types.HostnameTypeResourceName}
	elastic := base
	elastic.NetworkInterfaces = []ec2types.InstanceNetworkInterface{
		{Association: &ec2types.InstanceNetworkInterfaceAssociation{PublicDnsName: aws.String("EC2-203-0-113-8.eu-west-1.compute.amazonaws.com")}},
		{Association: &ec2types.InstanceNetworkInterfaceAssociation{PublicDnsName: aws.String("gone.example")},
			Attachment: &ec2types.InstanceNetworkInterfaceAttachment{Status: ec2types.AttachmentStatusDetached}},
	}
	virginia := base
	virginia.PrivateDnsName = aws.String("ip-172-16-1-9.ec2.internal")
	for name, c := range map[string]struct {
		machine    ec2types.Instance
		region     string
		nodes, all []string
	}{
		"by address": {base, "eu-west-1",
			[]string{"i-0abc", "i-0abc.eu-west-1.compute.internal", "ip-172-16-1-9", "ip-172-16-1-9.eu-west-1.compute.internal"},
			[]string{"i-0abc", "i-0abc.eu-west-1.compute.internal", "ip-172-16-1-9", "ip-172-16-1-9.eu-west-1.compute.internal"}},
		"by resource name": {byName, "eu-west-1",
			[]string{"i-0abc", "i-0abc.eu-west-1.compute.internal"},
			[]string{"ec2-203-0-113-7.eu-west-1.compute.amazonaws.com", "i-0abc", "i-0abc.eu-west-1.compute.internal", "ip-172-16-1-9", "ip-172-16-1-9.eu-west-1.compute.internal"}},
		"address of a second interface": {elastic, "eu-west-1",
			[]string{"i-0abc", "i-0abc.eu-west-1.compute.internal", "ip-172-16-1-9", "ip-172-16-1-9.eu-west-1.compute.internal"},
			[]string{"ec2-203-0-113-8.eu-west-1.compute.amazonaws.com", "i-0abc", "i-0abc.eu-west-1.compute.internal", "ip-172-16-1-9", "ip-172-16-1-9.eu-west-1.compute.internal"}},
		"us-east-1": {virginia, "us-east-1",
			[]string{"i-0abc", "i-0abc.ec2.internal", "ip-172-16-1-9", "ip-172-16-1-9.ec2.internal"},
			[]string{"i-0abc", "i-0abc.ec2.internal", "ip-172-16-1-9", "ip-172-16-1-9.ec2.internal"}},
		"terminated": {ec2types.Instance{InstanceId: aws.String("i-0abc"), PrivateDnsName: aws.String("")}, "eu-west-1",
			[]string{"i-0abc", "i-0abc.eu-west-1.compute.internal"}, []string{"i-0abc", "i-0abc.eu-west-1.compute.internal"}},
	} {
		nodes, all := names(&c.machine, c.region)
		if !slices.Equal(nodes, c.nodes) || !slices.Equal(all, c.all) {
			t.Errorf("%s: %q %q", name, nodes, all)
		}
	}
}

func TestAddressesLeaveOutWhatPodsUse(t *testing.T) {
	ip := func(s string) *string { return &s }
	m := ec2types.Instance{
		PrivateIpAddress: ip("10.0.0.1"), PublicIpAddress: ip("203.0.113.1"),
		NetworkInterfaces: []ec2types.InstanceNetworkInterface{
			{
				Attachment:       &ec2types.InstanceNetworkInterfaceAttachment{Status: ec2types.AttachmentStatusAttached},
				PrivateIpAddress: ip("10.0.0.1"), Association: &ec2types.InstanceNetworkInterfaceAssociation{PublicIp: ip("203.0.113.1")},
				PrivateIpAddresses: []ec2types.InstancePrivateIpAddress{
					{Primary: aws.Bool(true), PrivateIpAddress: ip("10.0.0.1")}, {Primary: aws.Bool(false), PrivateIpAddress: ip("10.0.0.66")}},
				Ipv4Prefixes:  []ec2types.InstanceIpv4Prefix{{Ipv4Prefix: ip("10.0.9.0/28")}},
				Ipv6Addresses: []ec2types.InstanceIpv6Address{{Ipv6Address: ip("2001:db8::1")}},
			},
			{
				Attachment: &ec2types.InstanceNetworkInterfaceAttachment{Status: ec2types.AttachmentStatusAttached}, PrivateIpAddress: ip("10.0.1.1"),
				Ipv6Addresses: []ec2types.InstanceIpv6Address{{Ipv6Address: ip("2001:db8::2"), IsPrimaryIpv6: aws.Bool(true)}, {Ipv6Address: ip("2001:db8::3")}},
			},
			{Attachment: &ec2types.InstanceNetworkInterfaceAttachment{Status: ec2types.AttachmentStatusDetaching}, PrivateIpAddress: ip("10.0.2.1")},
		},
	}
	var want []netip.Addr
	for _, s := range []string{"10.0.0.1", "10.0.1.1", "203.0.113.1", "2001:db8::1", "2001:db8::2"} {
		want = append(want, netip.MustParseAddr(s))
	}
	if got := addresses(&m, false); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	m.NetworkInterfaces[0].PrivateIpAddresses[1].Association = &ec2types.InstanceNetworkInterfaceAssociation{CarrierIp: ip("198.51.100.1")}
	for _, s := range []string{"10.0.0.66", "198.51.100.1", "2001:db8::3"} {
		want = append(want, netip.MustParseAddr(s))
	}
	slices.SortFunc(want, netip.Addr.Compare)
	if got := addresses(&m, true); !slices.Equal(got, want) {
		t.Errorf("with secondary addresses %v, want %v", got, want)
	}
}

func TestProviderIDs(t *testing.T) {
	if got := providerID("eu-west-1a", "i-1"); got != "aws:///eu-west-1a/i-1" {
		t.Error(got)
	}
	if got, ok := parseProviderID("aws:///eu-west-1a/i-1"); !ok || got != "i-1" {
		t.Errorf("%s %t", got, ok)
	}
	for _, bad := range []cluster.InstanceID{"", "i-1", "aws://eu-west-1a/i-1", "aws:///eu-west-1a/x", "aws:///eu-west-1a/i-1/x", "gce:///a/i-1"} {
		if got, ok := parseProviderID(bad); ok {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

// TestAMachineThatRunsWhileItsGroupLetsItGo: the names and addresses by which its
// certificates are renewed are there, and so is that it runs.
func TestAMachineThatRunsWhileItsGroupLetsItGo(t *testing.T) {
	p := newProvider(Config{}, cluster.Reservation{}, "eu-west-1", nil, nil)
	id := "i-1"
	for life, want := range map[asgtypes.LifecycleState]map[ec2types.InstanceStateName]cluster.Instance{
		"InService":        {"running": {Phase: cluster.PhaseRunning, Runs: true}, "stopped": {Phase: cluster.PhaseStopped}},
		"Standby":          {"running": {Phase: cluster.PhaseStopped, Runs: true}, "stopped": {Phase: cluster.PhaseStopped}},
		"EnteringStandby":  {"running": {Phase: cluster.PhaseStopped, Runs: true}},
		"Terminating":      {"running": {Phase: cluster.PhaseDeleting, Runs: true}, "shutting-down": {Phase: cluster.PhaseDeleting}},
		"Terminating:Wait": {"running": {Phase: cluster.PhaseDeleting, Runs: true}, "terminated": {Phase: cluster.PhaseGone}},
	} {
		for state, want := range want {
			of := ec2types.Instance{InstanceId: &id, State: &ec2types.InstanceState{Name: state}, PrivateIpAddress: aws.String("172.16.1.9"),
				Placement: &ec2types.Placement{AvailabilityZone: aws.String("eu-west-1a")}}
			got := p.instancesOf(asgtypes.AutoScalingGroup{Instances: []asgtypes.Instance{{InstanceId: &id, LifecycleState: life, AvailabilityZone: aws.String("eu-west-1a")}}},
				map[string]machine{id: p.machine(&of)})
			if len(got) != 1 || got[0].Phase != want.Phase || got[0].Runs != want.Runs || len(got[0].NodeNames) == 0 || len(got[0].Addresses) != 1 {
				t.Errorf("%s, EC2 %s: %+v, want phase %q and runs %v", life, state, got, want.Phase, want.Runs)
			}
		}
	}
}
