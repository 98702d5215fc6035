#!/bin/sh
# Makes what a cluster needs on AWS, with the aws command: what deploy/terraform/aws makes
# with Terraform. Everything that is there already is found by its name and kept, so that
# the script may be run again. Region and credentials are the aws command's own
# (AWS_REGION, AWS_PROFILE).
set -eu

usage() {
	cat >&2 <<'END'
aws.sh leader  --cluster NAME --admin CIDR --key FILE.pub [--type t3.large] [--disk 32]
               [--image AMI] [--vpc ID] [--subnet ID] [--owner NAME] [--group workers]
               [--between ports]
    With an --admin network of IPv6, SSH goes to an address of IPv6, which the subnet has to have.
    --between all lets the machines reach every port of one another, for host networks,
    NodePorts and Cilium's health checks, and not the API server, kubelets and VXLAN alone.
    roles, security groups, key pair, the leader with an address that outlives it, and a
    worker group that is closed (at most 0 machines)
aws.sh workers --cluster NAME --user-data FILE [--group workers] [--type t3.large,t3a.large]
               [--spot no] [--disk 32] [--min 0] [--max 10] [--subnets ID,ID] [--image AMI]
               [--vpc ID] [--owner NAME]
    a launch template, or a new version of it, and its Auto Scaling group, which is open then.
    Several types, the preferred one first, or --spot yes, make it a group of mixed instances.
    What is not given stays as the group has it.
The image is of Ubuntu 24.04, for the architecture of the types. A group keeps the one that it
began with; --image newest takes the newest one.
END
	exit 64
}

fail() {
	echo "aws.sh: $*" >&2
	exit 1
}

# options reads --NAME VALUE into variables.
options() {
	while [ $# -gt 0 ]; do
		[ $# -gt 1 ] || usage
		case $1 in
		--cluster) cluster=$2 ;;
		--admin) admin=$2 ;;
		--key) key=$2 ;;
		--type) type=$2 ;;
		--spot) spot=$2 ;;
		--disk) disk=$2 ;;
		--image) image=$2 ;;
		--vpc) vpc=$2 ;;
		--subnet) subnet=$2 ;;
		--subnets) subnets=$2 ;;
		--owner) owner=$2 ;;
		--between) between=$2 ;;
		--group) group=$2 ;;
		--min) min=$2 ;;
		--max) max=$2 ;;
		--user-data) data=$2 ;;
		*) usage ;;
		esac
		shift 2
	done
	case $cluster in
	'' | *[!a-z0-9-]*) fail "--cluster: a name of small letters, digits and dashes" ;;
	esac
	case $owner in
	*[!A-Za-z0-9@._-]*) fail "--owner: letters, digits, @, dot, dash and underscore" ;;
	esac
	case $group in
	'' | *[!a-z0-9-]*) fail "--group: a name of small letters, digits and dashes" ;;
	esac
	case $type in
	*[!a-z0-9.,-]* | ,* | *, | *,,*) fail "--type: instance types with a comma between them, as t3.large,t3a.large" ;;
	esac
	case $spot in
	'' | yes | no) ;;
	*) fail "--spot: yes or no" ;;
	esac
	case $between in
	ports | all) ;;
	*) fail "--between: ports or all" ;;
	esac
	case $disk$min$max in
	*[!0-9]*) fail "--disk, --min, --max: whole numbers" ;;
	esac
}

# ask prints one value of a list that the aws command reads, or nothing.
ask() {
	answer=$(aws "$@" --output text)
	[ "$answer" = None ] || printf '%s' "$answer"
}

# once runs a command whose repetition AWS answers with the error that is named first.
once() {
	known=$1
	shift
	if ! said=$("$@" 2>&1); then
		case $said in
		*"($known)"*) ;;
		*) fail "$said" ;;
		esac
	fi
}

# tagged prints a tag specification for a kind of resource and a name.
tagged() {
	printf 'ResourceType=%s,Tags=[{Key=Name,Value=%s},{Key=kubernetes.io/cluster/%s,Value=owned}%s]' \
		"$1" "$2" "$cluster" "${owner:+,{Key=Owner,Value=$owner\}}"
}

# places finds the network.
places() {
	[ -n "$vpc" ] || vpc=$(ask ec2 describe-vpcs --filters Name=is-default,Values=true --query 'Vpcs[0].VpcId')
	[ -n "$vpc" ] || fail "the region has no default VPC: give --vpc"
}

# system finds the architecture of the types, the image for it, and the image's root device. An image that
# was not asked for is the one that the group has, as long as it is for the architecture.
system() {
	all=$(echo "$type" | tr , ' ')
	# shellcheck disable=SC2086
	arm=$(ask ec2 describe-instance-types --instance-types $all --query "length(InstanceTypes[?contains(ProcessorInfo.SupportedArchitectures, 'arm64')])")
	# shellcheck disable=SC2086
	set -- $all
	case $arm in
	0) arch=amd64 architecture=x86_64 ;;
	"$#") arch=arm64 architecture=arm64 ;;
	*) fail "--type: $arm of the types $all are of arm64 and the others are not. A group has one image: make two groups" ;;
	esac
	case $image in
	'' | newest) ;;
	*)
		was=$(of "$image" Architecture)
		[ "$was" = "$architecture" ] || fail "--image: $image is for $was, and $all for $architecture"
		;;
	esac
	if [ -z "$image" ] && [ -n "$had" ]; then
		was=$(of "$had" Architecture)
		[ "$was" != "$architecture" ] || image=$had
	fi
	case $image in
	'' | newest) image=$(ask ssm get-parameter --query Parameter.Value \
		--name "/aws/service/canonical/ubuntu/server/24.04/stable/current/$arch/hvm/ebs-gp3/ami-id") ;;
	esac
	device=$(of "$image" RootDeviceName)
}

# of prints one property of an image.
of() {
	ask ec2 describe-images --image-ids "$1" --query "Images[0].$2"
}

# role makes a role that EC2 alone may take, and its instance profile.
role() {
	trust='{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}'
	set -- "$1" "Key=kubernetes.io/cluster/$cluster,Value=owned" ${owner:+"Key=Owner,Value=$owner"}
	name=$1
	shift
	once EntityAlreadyExists aws iam create-role --role-name "$name" --assume-role-policy-document "$trust" --tags "$@"
	once EntityAlreadyExists aws iam create-instance-profile --instance-profile-name "$name"
	once LimitExceeded aws iam add-role-to-instance-profile --instance-profile-name "$name" --role-name "$name"
}

security_group() {
	id=$(ask ec2 describe-security-groups --filters "Name=group-name,Values=$1" "Name=vpc-id,Values=$vpc" --query 'SecurityGroups[0].GroupId')
	[ -n "$id" ] || id=$(ask ec2 create-security-group --group-name "$1" --description "$2" --vpc-id "$vpc" \
		--tag-specifications "$(tagged security-group "$1")" --query GroupId)
	printf '%s' "$id"
}

# rule writes one rule: rule PROTOCOL PORT FROM, where FROM is a security group or a
# network.
rule() {
	case $3 in
	sg-*) from="UserIdGroupPairs=[{GroupId=$3}]" ;;
	*:*) from="Ipv6Ranges=[{CidrIpv6=$3}]" ;;
	*) from="IpRanges=[{CidrIp=$3}]" ;;
	esac
	printf 'IpProtocol=%s,FromPort=%s,ToPort=%s,%s' "$1" "$2" "$2" "$from"
}

# allow gives a security group rules. EC2 takes all of them or none, so that where one is
# there already each is tried by itself.
allow() {
	to=$1
	shift
	if ! said=$(aws ec2 authorize-security-group-ingress --group-id "$to" --ip-permissions "$@" 2>&1); then
		case $said in
		*"(InvalidPermission.Duplicate)"*) ;;
		*) fail "$said" ;;
		esac
		for one in "$@"; do
			once InvalidPermission.Duplicate aws ec2 authorize-security-group-ingress --group-id "$to" --ip-permissions "$one"
		done
	fi
}

# security makes both groups: SSH from the administrator, the API server and the attest
# listener from workers, kubelets from all machines, and the VXLAN of flannel or cilium; or everything
# from both.
security() {
	leaders=$(security_group "$cluster-leader" "control plane of $cluster")
	workers=$(security_group "$cluster-worker" "workers of $cluster")
	if [ "$between" = all ]; then
		every="IpProtocol=-1,UserIdGroupPairs=[{GroupId=$leaders},{GroupId=$workers}]"
		allow "$leaders" "$(rule tcp 22 "$admin")" "$every"
		allow "$workers" "$every"
		return
	fi
	allow "$leaders" "$(rule tcp 22 "$admin")" "$(rule tcp 6443 "$workers")" "$(rule tcp 6444 "$workers")" \
		"$(rule tcp 10250 "$workers")" "$(rule udp 8472 "$workers")"
	allow "$workers" "$(rule tcp 10250 "$leaders")" "$(rule udp 8472 "$leaders")" \
		"$(rule tcp 10250 "$workers")" "$(rule udp 8472 "$workers")"
}

# roles makes both: the leader's may scale the groups of this cluster alone, the workers'
# may pull images of ECR and nothing else.
roles() {
	role "$cluster-leader"
	arn=$(ask sts get-caller-identity --query Arn)
	case $arn in
	arn:aws-cn:*) partition=aws-cn ;;
	arn:aws-us-gov:*) partition=aws-us-gov ;;
	*) partition=aws ;;
	esac
	policy=$(sed "s/\${cluster}/$cluster/; s/\${partition}/$partition/" "$(dirname "$0")/../terraform/aws/leader-policy.json.tftpl")
	aws iam put-role-policy --role-name "$cluster-leader" --policy-name autoscaler-agent --policy-document "$policy"
	role "$cluster-worker"
	aws iam attach-role-policy --role-name "$cluster-worker" \
		--policy-arn "arn:$partition:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly"
}

# address makes the leader's network interface and its public address.
address() {
	[ -n "$subnet" ] || subnet=$(ask ec2 describe-subnets --filters "Name=vpc-id,Values=$vpc" --query 'sort_by(Subnets, &AvailabilityZone)[0].SubnetId')
	[ -n "$subnet" ] || fail "the VPC $vpc has no subnet: give --subnet"
	interface=$(ask ec2 describe-network-interfaces --filters "Name=tag:Name,Values=$cluster-leader" --query 'NetworkInterfaces[0].NetworkInterfaceId')
	[ -n "$interface" ] || interface=$(ask ec2 create-network-interface --subnet-id "$subnet" --groups "$leaders" \
		--tag-specifications "$(tagged network-interface "$cluster-leader")" --query NetworkInterface.NetworkInterfaceId)
	public=$(ask ec2 describe-addresses --filters "Name=tag:Name,Values=$cluster-leader" --query 'Addresses[0].AllocationId')
	[ -n "$public" ] || public=$(ask ec2 allocate-address --domain vpc --tag-specifications "$(tagged elastic-ip "$cluster-leader")" --query AllocationId)
	aws ec2 associate-address --allocation-id "$public" --network-interface-id "$interface" --allow-reassociation --output text >/dev/null
	case $admin in
	*:*) [ -n "$(six)" ] || aws ec2 assign-ipv6-addresses --network-interface-id "$interface" --ipv6-address-count 1 --output text >/dev/null ;;
	esac
}

# six prints the leader's address of IPv6.
six() {
	ask ec2 describe-network-interfaces --filters "Name=network-interface-id,Values=$interface" --query 'NetworkInterfaces[0].Ipv6Addresses[0].Ipv6Address'
}

# launch starts the leader. A new instance profile is known to EC2 some seconds later.
launch() {
	once InvalidKeyPair.Duplicate aws ec2 import-key-pair --key-name "$cluster" --public-key-material "fileb://$key"
	tries=20
	until said=$(aws ec2 run-instances --image-id "$image" --instance-type "$type" --key-name "$cluster" --count 1 \
		--iam-instance-profile "Name=$cluster-leader" \
		--network-interfaces "DeviceIndex=0,NetworkInterfaceId=$interface" \
		--metadata-options HttpTokens=required,HttpPutResponseHopLimit=1,HttpEndpoint=enabled \
		--block-device-mappings "DeviceName=$device,Ebs={VolumeSize=$disk,VolumeType=gp3,Encrypted=true,DeleteOnTermination=true}" \
		--tag-specifications "$(tagged instance "$cluster-leader")" "$(tagged volume "$cluster-leader")" \
		--query 'Instances[0].InstanceId' --output text 2>&1); do
		case $said in
		*"Invalid IAM Instance Profile"*) ;;
		*) fail "$said" ;;
		esac
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || fail "$said"
		sleep 3
	done
	running=$(printf '%s\n' "$said" | tail -n 1)
}

# machine prints the leader that is in one of some states.
machine() {
	ask ec2 describe-instances --filters "Name=tag:Name,Values=$cluster-leader" "Name=instance-state-name,Values=$1" \
		--query 'Reservations[0].Instances[0].InstanceId'
}

# reachable waits until the leader runs and answers SSH: the next commands of a person need that.
reachable() {
	aws ec2 wait instance-running --instance-ids "$running"
	tries=60
	until [ -n "$(ssh-keyscan -T 5 "$1" 2>/dev/null)" ]; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || fail "the leader $running runs, and answers no SSH at $1: is your own address in --admin $admin?"
		sleep 5
	done
}

leader() {
	[ -n "$admin" ] || fail "--admin: the network that you type from, as 203.0.113.7/32"
	[ -f "$key" ] || fail "--key: the file with your public SSH key"
	command -v ssh-keyscan >/dev/null || fail "ssh-keyscan is not installed: it comes with the ssh command"
	type=${type:-t3.large} disk=${disk:-32} spot=no min=0 max=0
	case $type in
	*,*) fail "--type: the leader has one type" ;;
	esac
	places
	system
	roles
	security
	address
	running=$(machine stopping,stopped)
	[ -z "$running" ] || fail "the leader $running is stopped: aws ec2 start-instances --instance-ids $running"
	running=$(machine pending,running)
	[ -n "$running" ] || launch
	name=$cluster-$group
	there=$(group_name)
	if [ -z "$there" ]; then
		template
		groups
	fi
	public=$(ask ec2 describe-addresses --allocation-ids "$public" --query 'Addresses[0].PublicIp')
	case $admin in *:*) public=$(six) ;; esac
	private=$(ask ec2 describe-network-interfaces --filters "Name=network-interface-id,Values=$interface" --query 'NetworkInterfaces[0].PrivateIpAddress')
	account=$(ask sts get-caller-identity --query Account)
	reachable "$public"
	printf '%s\n' "LEADER=$public" "ENDPOINT=$private" "ACCOUNT=$account" "ROLE=$cluster-worker"
}

# template makes the launch template, or a version of it that the group takes from now on.
template() {
	first=''
	[ -z "$data" ] || first=$(printf '"UserData": "%s", ' "$(base64 <"$data" | tr -d '\n')")
	content=$(printf '{%s"ImageId": "%s", "InstanceType": "%s", "SecurityGroupIds": ["%s"],
		"IamInstanceProfile": {"Name": "%s"}, "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"},
		"BlockDeviceMappings": [{"DeviceName": "%s", "Ebs": {"VolumeSize": %s, "VolumeType": "gp3", "Encrypted": true, "DeleteOnTermination": true}}],
		"TagSpecifications": [%s, %s]}' "$first" "$image" "${type%%,*}" "$workers" "$cluster-worker" "$device" "$disk" \
		"$(tagged_json instance)" "$(tagged_json volume)")
	there=$(template_id)
	if [ -n "$there" ]; then
		aws ec2 create-launch-template-version --launch-template-name "$name" --launch-template-data "$content" --output text >/dev/null
	else
		aws ec2 create-launch-template --launch-template-name "$name" --launch-template-data "$content" --output text \
			--tag-specifications "$(tagged launch-template "$name")" >/dev/null
	fi
}

template_id() {
	ask ec2 describe-launch-templates --filters "Name=launch-template-name,Values=$name" --query 'LaunchTemplates[0].LaunchTemplateId'
}

tagged_json() {
	printf '{"ResourceType": "%s", "Tags": [{"Key": "Name", "Value": "%s"}, {"Key": "kubernetes.io/cluster/%s", "Value": "owned"}%s]}' \
		"$1" "$name" "$cluster" "${owner:+, {\"Key\": \"Owner\", \"Value\": \"$owner\"\}}"
}

# launch_source sets how the group starts machines: by the launch template alone, or by it and a list of types.
launch_source() {
	template="\"LaunchTemplateName\": \"$name\", \"Version\": \"\$Latest\""
	case $spot$type in
	no*,* | yes*) ;;
	*)
		how=--launch-template source="{$template}"
		return
		;;
	esac
	overrides=''
	for one in $all; do
		overrides="$overrides${overrides:+, }{\"InstanceType\": \"$one\"}"
	done
	demand=100
	[ "$spot" = no ] || demand=0
	how=--mixed-instances-policy source=$(printf '{"LaunchTemplate": {"LaunchTemplateSpecification": {%s}, "Overrides": [%s]}, "InstancesDistribution": {"OnDemandAllocationStrategy": "prioritized",
		"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": %s, "SpotAllocationStrategy": "price-capacity-optimized"}}' "$template" "$overrides" "$demand")
}

# groups makes the Auto Scaling group with the tags by which the agent finds it. AWS ends
# none of its machines by itself: new ones are protected, and AZRebalance is off.
groups() {
	launch_source
	there=$(group_name)
	if [ -z "$there" ]; then
		[ -n "$subnets" ] || subnets=$(ask ec2 describe-subnets --filters "Name=vpc-id,Values=$vpc" --query "join(',', Subnets[].SubnetId)")
		[ -n "$subnets" ] || fail "the VPC $vpc has no subnet: give --subnets"
		aws autoscaling create-auto-scaling-group --auto-scaling-group-name "$name" \
			"$how" "$source" --min-size "$min" --max-size "$max" --desired-capacity "$min" \
			--vpc-zone-identifier "$subnets" --new-instances-protected-from-scale-in
	else
		aws autoscaling update-auto-scaling-group --auto-scaling-group-name "$name" "$how" "$source" --min-size "$min" --max-size "$max" \
			${subnets:+--vpc-zone-identifier "$subnets"}
	fi
	aws autoscaling suspend-processes --auto-scaling-group-name "$name" --scaling-processes AZRebalance
	aws autoscaling create-or-update-tags --tags \
		"$(group_tag k8s.io/cluster-autoscaler/enabled '' false)" "$(group_tag "k8s.io/cluster-autoscaler/$cluster" '' false)" \
		"$(group_tag "kubernetes.io/cluster/$cluster" owned true)" "$(group_tag Name "$name" true)" \
		${owner:+"$(group_tag Owner "$owner" true)"}
}

group_name() {
	ask autoscaling describe-auto-scaling-groups --auto-scaling-group-names "$name" --query 'AutoScalingGroups[0].AutoScalingGroupName'
}

group_tag() {
	printf 'ResourceId=%s,ResourceType=auto-scaling-group,Key=%s,Value=%s,PropagateAtLaunch=%s' "$name" "$1" "$2" "$3"
}

# kept reads of a group that is there what was not given. A closed group has no bounds to keep.
kept() {
	there=$(template_id)
	[ -z "$there" ] || had=$(latest ImageId)
	[ -z "$there" ] || [ -n "$disk" ] || disk=$(latest 'BlockDeviceMappings[0].Ebs.VolumeSize')
	there=$(group_name)
	if [ -n "$there" ]; then
		[ -n "$type" ] || type=$(group_has "join(',', MixedInstancesPolicy.LaunchTemplate.Overrides[].InstanceType || \`[]\`)")
		[ -n "$type" ] || type=$(latest InstanceType)
		demand=$(group_has MixedInstancesPolicy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity)
		[ -n "$spot" ] || [ "$demand" != 0 ] || spot=yes
		was=$(group_has MaxSize)
		if [ "$was" -gt 0 ]; then
			[ -n "$min" ] || min=$(group_has MinSize)
			max=${max:-$was}
		fi
	fi
	type=${type:-t3.large} spot=${spot:-no} disk=${disk:-32} min=${min:-0} max=${max:-10}
	[ "$min" -le "$max" ] || fail "--min: $min is more than the maximum $max"
}

latest() {
	ask ec2 describe-launch-template-versions --launch-template-name "$name" --versions "\$Latest" --query "LaunchTemplateVersions[0].LaunchTemplateData.$1"
}

group_has() {
	ask autoscaling describe-auto-scaling-groups --auto-scaling-group-names "$name" --query "AutoScalingGroups[0].$1"
}

workers() {
	[ -s "$data" ] || fail "--user-data: the file that autoscaler-agent userdata render wrote"
	name=$cluster-$group
	places
	workers=$(ask ec2 describe-security-groups --filters "Name=group-name,Values=$cluster-worker" "Name=vpc-id,Values=$vpc" --query 'SecurityGroups[0].GroupId')
	[ -n "$workers" ] || fail "there is no security group $cluster-worker: run aws.sh leader first"
	kept
	system
	template
	groups
	echo "GROUP=$name"
}

[ $# -gt 0 ] || usage
what=$1
shift
case $what in leader | workers) ;; *) usage ;; esac
cluster='' admin='' key='' type='' spot='' disk='' image='' had='' vpc='' subnet='' subnets='' owner='' between=ports group=workers min='' max='' data=''
options "$@"
"$what"
