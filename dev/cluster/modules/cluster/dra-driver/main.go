// A DRA driver with pretended GPUs: it publishes a ResourceSlice of its node, and tells the kubelet that whatever the
// scheduler has allocated is prepared. Containers are given nothing: that would need CDI, which the cluster's containerd
// (1.6) does not know.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

type driver struct{ name string }

// PrepareResourceClaims has nothing to do: it names the devices that are allocated to each claim.
func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resource.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	prepared := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		var devices []kubeletplugin.Device
		for _, one := range claim.Status.Allocation.Devices.Results {
			if one.Driver == d.name {
				devices = append(devices, kubeletplugin.Device{
					Requests: []string{one.Request}, PoolName: one.Pool, DeviceName: one.Device})
			}
		}
		log.Printf("%s/%s has %d devices", claim.Namespace, claim.Name, len(devices))
		prepared[claim.UID] = kubeletplugin.PrepareResult{Devices: devices}
	}
	return prepared, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	gone := map[types.UID]error{}
	for _, claim := range claims {
		gone[claim.UID] = nil
	}
	return gone, nil
}

func (d *driver) HandleError(_ context.Context, err error, message string) {
	log.Printf("%s: %v", message, err)
}

// productOf is what GPU feature discovery has written on the node, with the driver's own spelling.
func productOf(ctx context.Context, client kubernetes.Interface, node string) (string, error) {
	found, err := client.CoreV1().Nodes().Get(ctx, node, meta.GetOptions{})
	if err != nil {
		return "", err
	}
	return found.Labels["nvidia.com/gpu.product"], nil
}

func main() {
	name := flag.String("driver", "gpu.example.com", "name of the driver")
	count := flag.Int("count", 8, "devices to offer")
	node := flag.String("node", os.Getenv("NODE_NAME"), "name of the node")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "the kubelet's directory, which has plugins and plugins_registry")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	configuration, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // in a pod it is empty
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(configuration)
	product, err := productOf(ctx, client, *node)
	if err != nil {
		log.Fatal(err)
	}
	data := filepath.Join(*kubelet, "plugins", *name)
	if err := os.MkdirAll(data, 0o750); err != nil {
		log.Fatal(err)
	}
	helper, err := kubeletplugin.Start(ctx, &driver{name: *name},
		kubeletplugin.KubeClient(client), kubeletplugin.NodeName(*node), kubeletplugin.DriverName(*name),
		kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*kubelet, "plugins_registry")))
	if err != nil {
		log.Fatal(err)
	}
	defer helper.Stop()

	var devices []resource.Device
	for i := range *count {
		devices = append(devices, resource.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resource.QualifiedName]resource.DeviceAttribute{"productName": {StringValue: &product}}})
	}
	pools := map[string]resourceslice.Pool{*node: {Slices: []resourceslice.Slice{{Devices: devices}}}}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: pools}); err != nil {
		log.Fatal(err)
	}
	log.Printf("published %d devices (%s) of %s", *count, product, *node)
	<-ctx.Done()
}
