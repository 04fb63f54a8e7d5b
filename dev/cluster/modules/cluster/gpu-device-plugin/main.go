// A kubelet device plugin that offers pretended GPUs or TPUs, so that the real scheduler counts them and the real kubelet
// hands out their ids. It registers again whenever the kubelet restarts: the kubelet then empties the plugin directory.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices  []*api.Device
	variable string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch sends the devices once; they never change, but the stream must stay open.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// Allocate tells a container its devices the way NVIDIA's plugin does, or nothing.
func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		visible := map[string]string{}
		if p.variable != "" {
			visible[p.variable] = strings.Join(container.DevicesIds, ",")
		}
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{Envs: visible})
	}
	return response, nil
}

func (p *plugin) serve(socket string) (*grpc.Server, error) {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	return server, nil
}

func register(kubelet, endpoint, resource string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: resource})
	return err
}

// exists waits in the caller's loop rather than on inotify: one stat a second needs no explanation.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "extended resource to offer")
	count := flag.Int("count", 8, "devices to offer")
	variable := flag.String("variable", "NVIDIA_VISIBLE_DEVICES", "what tells a container its device ids; empty: nothing")
	node := flag.String("node", os.Getenv("NODE_NAME"), "name in the device ids, GPU-<node>-<number>")
	directory := flag.String("directory", api.DevicePluginPath, "the kubelet's plugin directory")
	flag.Parse()

	p := &plugin{variable: *variable}
	for i := range *count {
		p.devices = append(p.devices, &api.Device{ID: fmt.Sprintf("GPU-%s-%d", *node, i), Health: api.Healthy})
	}
	kubelet := filepath.Join(*directory, "kubelet.sock")
	endpoint := "paceline-" + strings.NewReplacer("/", "-", ".", "-").Replace(*resource) + ".sock"
	socket := filepath.Join(*directory, endpoint)
	for ; ; time.Sleep(time.Second) {
		server, err := p.serve(socket)
		if err != nil {
			log.Fatal(err)
		}
		if err = register(kubelet, endpoint, *resource); err != nil {
			log.Printf("kubelet not ready: %v", err)
		} else {
			log.Printf("registered %d %s", *count, *resource)
			for exists(socket) {
				time.Sleep(time.Second)
			}
			log.Print("kubelet restarted")
		}
		server.Stop()
	}
}
