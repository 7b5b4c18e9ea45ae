// Tests .npy files against bytes written by hand as NumPy writes them, and against damaged files.
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/npy.h>
#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

namespace tapedeck {
namespace {

std::string npy(int version, const std::string& header, const std::string& data) {
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(version), '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  if (version > 1) file += std::string(2, '\0');
  return file + header + data;
}

Tensor parsed(const std::string& file) {
  return read_npy(MemorySource({reinterpret_cast<const unsigned char*>(file.data()), file.size()}, "dir/x.npy"));
}

TEST(Npy, ReadsVersionsOneToThree) {
  for (const int version : {1, 2, 3}) {
    const Tensor t = parsed(
        npy(version, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1), }   \n", std::string("\1\0\0\0\2\0\0\0", 8)));
    EXPECT_EQ(t.type(), (Type{DType::i32, {2, 1}}));
    EXPECT_EQ(t.to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2}));
  }
}

TEST(Npy, FortranOrderIsTurned) {
  const std::string data = "\1\2\3\4\5\6";
  const Tensor t = parsed(npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", data));
  EXPECT_EQ(t.to_vector<unsigned char>(), (std::vector<unsigned char>{1, 3, 5, 2, 4, 6}));
  const Tensor empty = parsed(npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 0), }\n", ""));
  EXPECT_EQ(empty.type(), (Type{DType::u8, {2, 0}}));
}

TEST(Npy, WritesWhatNumPyWrites) {
  const TemporaryFolder folder;
  save_npy(folder.file("x.npy"), tensor({1, 2}));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  EXPECT_EQ(read_all(folder.file("x.npy")), npy(1, header + '\n', std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
}

TEST(Npy, RoundTrip) {
  const TemporaryFolder folder;
  const std::string ones(64, '\1');
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0}, Shape{1, 1, 1, 1, 1, 1, 1, 2}}) {
      const Tensor t = from_bytes({dtype, shape}, ones.data());
      save_npy(folder.file("x.npy"), t);
      EXPECT_TRUE(bit_equal(load_npy(folder.file("x.npy")), t)) << to_string(t.type());
    }
  EXPECT_THROW(save_npy(folder.file("x.npy"), from_bytes({DType::bf16, {2}}, ones.data())), UsageError);
  EXPECT_THROW(save_npy(folder.file("x.npy"), abstract_tensor({DType::f32, {2}})), UsageError);
}

TEST(Npy, StridedTensorsAreStoredInCOrder) {
  const TemporaryFolder folder;
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const std::int64_t strides[] = {1, 3};
  save_npy(folder.file("x.npy"), Tensor(detail::new_view(*x.impl(), {3, 2}, 0, strides)));
  EXPECT_EQ(load_npy(folder.file("x.npy")).to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

struct BadNpy {
  const char* header;
  std::size_t data;
  const char* reason;
};

TEST(Npy, RefusesBadHeaders) {
  const BadNpy cases[] = {
      {"", 0, "'{' should be here"},
      {"{", 0, "a string should be here"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4, "'}' should be here"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, "something behind"},
      {"{'descr': '<f4', 'fortran_order': False}", 4, "lacks descr, fortran_order or shape"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "repeated key \"descr\""},
      {"{'descr': '<f4', 'order': 1}", 4, "unexpected or repeated key \"order\""},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4, "dtype \">f4\" is not supported"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8, "dtype \"<c8\" is not supported"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "records are not supported"},
      {"{'descr': '<f4", 0, "a string does not end"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, "neither True nor False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, "a size is not a number"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}", 4, "rank above 8"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4, "a size is too large"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0, "the array is too large"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7, "it is cut off at byte"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7, "f32[2] takes 8 bytes, 7 follow the header"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9,
       "not a readable .npy file: f32[2] takes 8 bytes, 9 follow the header"},
  };
  for (const BadNpy& bad : cases) {
    const std::string message = message_of<FileError>([&] { parsed(npy(1, bad.header, std::string(bad.data, '\0'))); });
    EXPECT_EQ(message.rfind("dir/x.npy: ", 0), 0u) << message;
    EXPECT_NE(message.find(bad.reason), std::string::npos) << bad.header << "\n  gives  " << message;
  }
  EXPECT_NE(message_of<FileError>([] {
              parsed(npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\2"));
            }).find("other than 0 and 1"),
            std::string::npos);
}

TEST(Npy, RefusesBadStarts) {
  const std::string whole = npy(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", std::string(4, '\0'));
  EXPECT_EQ(parsed(whole).rank(), 0);
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(parsed(whole.substr(0, n)), FileError) << n << " bytes";
  EXPECT_THROW(parsed(npy(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", std::string(4, '\0'))), FileError);
  EXPECT_THROW(load_npy("/no/such/file"), FileError);
}

}  // namespace
}  // namespace tapedeck
