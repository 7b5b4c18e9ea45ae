// Tests the safetensors format against files written by hand, byte by byte, and against headers that are wrong in every
// field.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/safetensors.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <fmt/format.h>

#include <cstring>

namespace tapedeck {
namespace {

std::string container(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> 8 * i & 255);
  return file + header + data;
}

Bytes bytes_of_text(const std::string& s) { return {reinterpret_cast<const unsigned char*>(s.data()), s.size()}; }

TEST(Safetensors, ReadsAFileWrittenByHand) {
  const std::string header =
      R"({"__metadata__":{"k":"v \u00e9"},"b":{"dtype":"I32","shape":[2],"data_offsets":[4,12]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"F64","shape":[3,0],"data_offsets":[4,4]}}   )";
  const TemporaryFolder folder;
  write_all(folder.file("w"), container(header, std::string("\0\0\x80\x3f\1\0\0\0\xff\xff\xff\xff", 12)));
  const auto tensors = load_safetensors(folder.file("w"));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("a").item(), 1.0);
  EXPECT_EQ(tensors.at("a").rank(), 0);
  EXPECT_EQ(tensors.at("b").to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, -1}));
  EXPECT_EQ(tensors.at("none").type(), (Type{DType::f64, {3, 0}}));

  const std::string whole = read_all(folder.file("w"));
  const Safetensors parsed = read_safetensors(MemorySource(bytes_of_text(whole), "w"));
  EXPECT_EQ(parsed.metadata.at("k"), "v \xc3\xa9");
  EXPECT_EQ(parsed.tensors[0].name, "a");  // in the order of the data, not of the header
}

TEST(Safetensors, WritesWhatTheFormatSays) {
  const TemporaryFolder folder;
  const auto path = folder.file("w");
  save_safetensors(path, {{"b", tensor({1, 2})}, {"a", scalar(7, DType::u8)}, {"c", scalar(1, DType::boolean)}},
                   {{"made by", "a \"test\"\n"}});
  const std::string header =
      R"({"__metadata__":{"made by":"a \"test\"\u000a"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"U8","shape":[],"data_offsets":[8,9]},"c":{"dtype":"BOOL","shape":[],"data_offsets":[9,10]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_all(path), container(padded, std::string("\0\0\x80\x3f\0\0\0\x40\7\1", 10)));
}

TEST(Safetensors, RoundTripOfEveryDtype) {
  const TemporaryFolder folder;
  std::map<std::string, Tensor> tensors;
  const std::string ones(64, '\1');
  for (int d = 0; d < kDTypeCount; ++d)
    for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{0, 4}, Shape{1, 1, 1, 1, 1, 1, 1, 2}}) {
      const Type type{static_cast<DType>(d), shape};
      tensors.emplace(to_string(type), from_bytes(type, ones.data()));
    }
  save_safetensors(folder.file("w"), tensors);
  const auto loaded = load_safetensors(folder.file("w"));
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(bit_equal(loaded.at(name), tensor)) << name;
}

TEST(Safetensors, StridedTensorsAreStoredInCOrder) {
  const TemporaryFolder folder;
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const std::int64_t strides[] = {1, 3};
  const Tensor transposed(detail::new_view(*x.impl(), {3, 2}, 0, strides));
  save_safetensors(folder.file("w"), {{"t", transposed}});
  EXPECT_EQ(load_safetensors(folder.file("w")).at("t").to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

TEST(Safetensors, RefusesToWriteWhatNobodyCouldRead) {
  const TemporaryFolder folder;
  EXPECT_THROW(save_safetensors(folder.file("w"), {{"t", Tensor()}}), UsageError);
  EXPECT_THROW(save_safetensors(folder.file("w"), {{"t", abstract_tensor({DType::f32, {2}})}}), UsageError);
  EXPECT_THROW(save_safetensors(folder.file("w"), {{"__metadata__", tensor({1})}}), UsageError);
  EXPECT_THROW(save_safetensors(folder.file("w"), {{"\xff", tensor({1})}}), UsageError);
  EXPECT_TRUE(folder.names().empty());
}

struct BadSafetensors {
  const char* header;
  std::size_t data;
  const char* reason;
};

TEST(Safetensors, RefusesBadHeaders) {
  const BadSafetensors cases[] = {
      {R"([])", 0, "does not start with '{'"},
      {R"( {})", 0, "does not start with '{'"},
      {R"({)", 0, "not JSON at byte"},
      {R"({} x)", 0, "not JSON at byte"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
       "\"a\" appears twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "\"dtype\" appears twice"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "\"k\" appears twice"},
      {R"({"__metadata__":{"k":1}})", 0, "an integer where a string should be"},
      {R"({"a":[]})", 0, "an array where an object should be"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "\"dtype\" is missing"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "\"shape\" is missing"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "\"data_offsets\" is missing"},
      {R"({"a":{"dtype":"F8","shape":[4],"data_offsets":[0,4]}})", 4, "dtype \"F8\" is not known"},
      {R"({"a":{"dtype":"i8","shape":[4],"data_offsets":[0,4]}})", 4, "dtype \"i8\" is not known"},
      {R"({"a":{"dtype":"I16","shape":[4],"data_offsets":[0,4]}})", 4, "I16[4] takes 8 bytes, data_offsets give 4"},
      {R"({"a":{"dtype":"U64","shape":[1],"data_offsets":[0,8]}})", 4, "not inside the 4 bytes of data"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "12 bits do not fill whole bytes"},
      {R"({"a":{"dtype":"C64","shape":[-1],"data_offsets":[0,4]}})", 4, "a size is negative"},
      {R"({"a":{"dtype":"I8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "larger than 64 TiB"},
      {R"({"a":{"dtype":"I8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1, "rank 9 is above 8"},
      {R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 5, "1 bytes behind the last tensor"},
      {R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U16","shape":[1],"data_offsets":[3,5]}})", 5,
       "tensor \"b\" overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U16","shape":[1],"data_offsets":[5,7]}})", 7,
       "a hole of 1 bytes before tensor \"b\""},
      {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4, "rank 9 is above 8"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "a size is negative"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "a real number where an integer"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "larger than 64 TiB"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, "where an integer below 2^63"},
      {R"({"a":{"dtype":"F32","shape":[0,9223372036854775807,9],"data_offsets":[0,0]}})", 0, "larger than 64 TiB"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "f32[2] takes 8 bytes, data_offsets give 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "data_offsets are not two"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "not inside the 4 bytes of data"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "not inside the 4 bytes of data"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, "not inside the 3 bytes of data"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "1 bytes behind the last tensor"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "a hole of 4 bytes before tensor \"a\""},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8,
       "tensor \"b\" overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12,
       "a hole of 4 bytes before tensor \"b\""},
      {R"({"__metadata__":{"a":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}})", 0, "nested deeper than 16"},
      {"{\"a\xff\":{}}", 0, "not JSON at byte"},
  };
  for (const BadSafetensors& bad : cases) {
    const std::string file = container(bad.header, std::string(bad.data, '\0'));
    const std::string message = message_of<FileError>([&] { read_safetensors(MemorySource(bytes_of_text(file), "dir/w.st")); });
    EXPECT_EQ(message.rfind("dir/w.st: ", 0), 0u) << message;
    EXPECT_NE(message.find(bad.reason), std::string::npos) << bad.header << "\n  gives  " << message;
  }
}

TEST(Safetensors, RefusesBadLengths) {
  const std::string whole = container(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string(4, '\0'));
  EXPECT_EQ(read_safetensors(MemorySource(bytes_of_text(whole), "f")).tensors.size(), 1u);
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(read_safetensors(MemorySource(bytes_of_text(whole.substr(0, n)), "f")), FileError) << n << " bytes";
  for (int bit = 0; bit < 64; ++bit) {
    std::string bent = whole;
    bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(read_safetensors(MemorySource(bytes_of_text(bent), "f")), FileError) << "length bit " << bit;
  }
  const std::string huge =
      container("{", "").replace(0, 8, std::string("\1\xe1\xf5\5\0\0\0\0", 8));  // a header length of 100,000,001
  EXPECT_NE(message_of<FileError>([&] { read_safetensors(MemorySource(bytes_of_text(huge), "f")); }).find("too large"),
            std::string::npos);
}

TEST(Safetensors, BoolsAreZeroOrOne) {
  const TemporaryFolder folder;
  write_all(folder.file("w"), container(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\1\2"));
  EXPECT_NE(message_of<FileError>([&] { load_safetensors(folder.file("w")); }).find("bytes other than 0 and 1"),
            std::string::npos);
}

// The bytes of dtypes that are not ours stay in the file; all other tensors are read.
TEST(Safetensors, ListsTensorsOfOtherDtypes) {
  const TemporaryFolder folder;
  const std::string header =
      R"({"__metadata__":{"k":"v"},"q":{"dtype":"I8","shape":[2,3],"data_offsets":[0,6]},)"
      R"("w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"h":{"dtype":"U16","shape":[1],"data_offsets":[6,8]},)"
      R"("e":{"dtype":"F8_E4M3","shape":[0,5],"data_offsets":[16,16]},"f":{"dtype":"F4","shape":[2,2],"data_offsets":[16,18]},)"
      R"("g":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[18,21]},"u":{"dtype":"U32","shape":[],"data_offsets":[21,25]},)"
      R"("v":{"dtype":"U64","shape":[1],"data_offsets":[25,33]}})";
  const auto path = folder.file("w");
  write_all(path,
            container(header, std::string(8, '\xff') + std::string("\0\0\x80\x3f\0\0\0\x40", 8) + std::string(17, '\xff')));
  const TensorFile file = load_tensor_file(path);
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.at("w").to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(file.metadata.at("k"), "v");
  std::vector<std::string> skipped;
  for (const SkippedTensor& t : file.skipped) skipped.push_back(t.name + " " + to_string(t));
  EXPECT_EQ(skipped, (std::vector<std::string>{"e F8_E4M3[0,5]", "f F4[2,2]", "g F6_E2M3[4]", "h U16[1]", "q I8[2,3]",
                                               "u U32[]", "v U64[1]"}));
  EXPECT_EQ(message_of<FileError>([&] { file.at("q"); }), path + ": tensor \"q\" is I8[2,3], a dtype that cannot be loaded");
  EXPECT_EQ(message_of<FileError>([&] { file.at("x"); }), path + ": there is no tensor \"x\"");
  EXPECT_EQ(load_safetensors(path).size(), 1u);
}

TEST(Safetensors, MissingAndOddFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of<FileError>([&] { load_safetensors("/no/such/file"); }),
            "/no/such/file: cannot read: No such file or directory");
  EXPECT_NE(message_of<FileError>([&] { load_safetensors(folder.file("")); }).find("Is a directory"), std::string::npos);
  write_all(folder.file("empty"), "");
  EXPECT_NE(message_of<FileError>([&] { load_safetensors(folder.file("empty")); }).find("only 0 bytes long"),
            std::string::npos);
}

// Every beginning of a file says that it is cut off, and where.
TEST(Safetensors, AFileThatIsCutOff) {
  const TemporaryFolder folder;
  save_safetensors(folder.file("whole"), {{"a", ones({3})}, {"b", ones({2, 2})}});
  const std::string whole = read_all(folder.file("whole"));
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), 8);
  const std::size_t header = 8 + length;
  ASSERT_EQ(header + 7 * sizeof(float), whole.size());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    write_all(folder.file("cut"), whole.substr(0, n));
    const std::string message = message_of<FileError>([&] { load_safetensors(folder.file("cut")); });
    const std::string wanted =
        n < 8        ? fmt::format("only {} bytes long; it is empty or cut off", n)
        : n == 8     ? fmt::format("the file only {}", n)
        : n < header ? fmt::format("it is cut off in its header: the header has {} bytes, the file only {}", header - 8, n)
                     : fmt::format("it is cut off at byte {}, and its header describes {} bytes (", n, whole.size());
    EXPECT_NE(message.find(wanted), std::string::npos) << message << "\nlacks " << wanted;
  }
  // A length without a header behind it is the beginning of another file.
  write_all(folder.file("other"), std::string("\x40\0\0\0\0\0\0\0text", 12));
  EXPECT_EQ(message_of<FileError>([&] { load_safetensors(folder.file("other")); }).find("cut off"), std::string::npos);
}

// The header describes as much as there is, or less: nothing is cut off, whatever else is wrong.
TEST(Safetensors, OtherFaultsAreNotCalledCutOff) {
  const TemporaryFolder folder;
  for (const char* header :
       {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", R"({"a":{"dtype":"F8","shape":[4],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", R"({)"}) {
    std::string length(8, '\0');
    length[0] = static_cast<char>(std::string(header).size());
    write_all(folder.file("w"), length + header + "1234");
    EXPECT_EQ(message_of<FileError>([&] { load_safetensors(folder.file("w")); }).find("cut off"), std::string::npos) << header;
  }
}

}  // namespace
}  // namespace tapedeck
