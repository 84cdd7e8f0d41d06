// Networks of TorchScript, run again and again without Python: no lock of an interpreter is held meanwhile.
//
// The graph executor optimises nothing, so that the kernels are those of PyTorch called operator by operator.

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr double LEARNING_RATE = 1e-3;
constexpr double MOMENTUM = 0.9;
constexpr int64_t CLASSES = 1000;

struct Task {
    torch::jit::Module network;
    c10::Stream stream;
    bool trains;
    at::Tensor images, labels;
    std::vector<at::Tensor> weights, momenta;

    Task(const char* path, c10::Stream on, bool trains_, int64_t batch, int64_t pixels)
        : network(torch::jit::load(path, on.device())), stream(on), trains(trains_) {
        images = at::randn({batch, 3, pixels, pixels}, at::TensorOptions().device(on.device()));
        labels = at::randint(CLASSES, {batch}, at::TensorOptions().device(on.device()).dtype(at::kLong));
        for (const at::Tensor& weight : network.parameters()) weights.push_back(weight);
        for (const at::Tensor& weight : weights) momenta.push_back(at::zeros_like(weight.detach()));
    }

    void infer() {
        c10::InferenceMode guard;
        network.forward({images}).toTensor().cpu();
    }

    // As torch.optim.SGD does it.
    void train() {
        for (at::Tensor& weight : weights) weight.mutable_grad().reset();
        at::cross_entropy_loss(network.forward({images}).toTensor(), labels).backward();
        at::NoGradGuard guard;
        std::vector<at::Tensor> gradients;
        for (const at::Tensor& weight : weights) gradients.push_back(weight.grad());
        at::_foreach_mul_(momenta, MOMENTUM);
        at::_foreach_add_(momenta, gradients, 1.0);
        at::_foreach_add_(weights, momenta, -LEARNING_RATE);
    }

    void once() {
        trains ? train() : infer();
        if (!stream.device().is_cpu()) stream.synchronize();
    }
};

// Of the clock that time.perf_counter() shows on Linux.
double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The end of the error's text, where TorchScript says what went wrong.
void tell(const std::exception& error, char* message, size_t room) {
    auto own = dynamic_cast<const c10::Error*>(&error);
    std::string text = own ? own->what_without_backtrace() : error.what();
    if (text.size() >= room) text.erase(0, text.size() - room + 1);
    std::memcpy(message, text.c_str(), text.size() + 1);
}

}  // namespace

extern "C" {

// A task on a stream, or nullptr and a message.
void* task_new(const char* path, int64_t stream, int64_t device, int64_t type, int trains, int64_t batch,
               int64_t pixels, char* message, size_t room) {
    try {
        auto on = c10::Stream::unpack3(stream, static_cast<c10::DeviceIndex>(device), static_cast<c10::DeviceType>(type));
        c10::StreamGuard guard(on);
        return new Task(path, on, trains != 0, batch, pixels);
    } catch (const std::exception& error) {
        tell(error, message, room);
        return nullptr;
    }
}

// Iterations, each until the GPU is done with it, until `stop` is set, `seconds` are over or there are `most`.
// `spans`: start and end of each, s. Returns how many, or -1 and a message.
int64_t task_repeat(void* given, const int* stop, double seconds, int64_t most, double* spans, char* message,
                    size_t room) {
    try {
        Task& task = *static_cast<Task*>(given);
        c10::StreamGuard guard(task.stream);
        torch::jit::GraphOptimizerEnabledGuard plain(false);
        const double end_s = now_s() + seconds;
        int64_t count = 0;
        double start_s = now_s();
        while (count < most && start_s < end_s && !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
            task.once();
            spans[2 * count] = start_s;
            start_s = spans[2 * count++ + 1] = now_s();
        }
        return count;
    } catch (const std::exception& error) {
        tell(error, message, room);
        return -1;
    }
}

// The network as it has become, into a file; 0, or -1 and a message.
int task_save(void* given, const char* path, char* message, size_t room) {
    try {
        static_cast<Task*>(given)->network.save(path);
        return 0;
    } catch (const std::exception& error) {
        tell(error, message, room);
        return -1;
    }
}

void task_free(void* given) { delete static_cast<Task*>(given); }
}
