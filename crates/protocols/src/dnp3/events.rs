//! Events of DNP3.

use gannet_event::Connection;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Dnp3Tcp);

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// Header of a request.
        pub struct Dnp3ApplicationRequestHeader = "dnp3_application_request_header" {
            /// Fragmentation and confirmation flags.
            application: u64 = "application",
            /// Function code.
            fc: u64 = "fc",
        }

        /// Header of a response.
        pub struct Dnp3ApplicationResponseHeader = "dnp3_application_response_header" {
            /// Fragmentation and confirmation flags.
            application: u64 = "application",
            /// Function code.
            fc: u64 = "fc",
            /// Internal indications of the outstation.
            iin: u16 = "iin",
        }

        /// An object header.
        pub struct Dnp3ObjectHeader = "dnp3_object_header", opt_in {
            /// Group and variation.
            obj_type: u64 = "obj_type",
            /// The qualifier.
            qua_field: u64 = "qua_field",
            /// Number of objects.
            number: u64 = "number",
            /// The first field of the range, or the count.
            rf_low: u64 = "rf_low",
            /// The second field of the range.
            rf_high: u64 = "rf_high",
        }

        /// The prefix of an object.
        pub struct Dnp3ObjectPrefix = "dnp3_object_prefix", opt_in {
            /// The prefix; 0 without one.
            prefix_value: u64 = "prefix_value",
        }

        /// The link header of the first frame of a message.
        pub struct Dnp3HeaderBlock = "dnp3_header_block", opt_in {
            /// Length of the frame from its control field on, in bytes.
            len: u64 = "len",
            /// The control field.
            ctrl: u64 = "ctrl",
            /// Destination address.
            dest_addr: u64 = "dest_addr",
            /// Source address.
            src_addr: u64 = "src_addr",
        }

        /// The end of an object of a response, after the events of its parts.
        pub struct Dnp3ResponseDataObject = "dnp3_response_data_object", opt_in {
            /// The value of binary inputs and outputs, otherwise 255.
            data_value: u64 = "data_value",
        }

        /// An attribute of the device (group 0).
        pub struct Dnp3AttributeCommon<'a> = "dnp3_attribute_common", opt_in {
            /// Type of the attribute.
            data_type_code: u64 = "data_type_code",
            /// Length of the attribute, in bytes.
            leng: u64 = "leng",
            /// Value of the attribute.
            attribute_obj: &'a [u8] = "attribute_obj",
        }

        /// Control relay output block (group 12, variation 1).
        pub struct Dnp3Crob = "dnp3_crob", opt_in {
            /// Control code.
            control_code: u64 = "control_code",
            /// Number of times that the operation is executed.
            count8: u64 = "count8",
            /// Time that the output is on, in milliseconds.
            on_time: u64 = "on_time",
            /// Time that the output is off, in milliseconds.
            off_time: u64 = "off_time",
            /// Status code.
            status_code: u64 = "status_code",
        }

        /// Pattern control block (group 12, variation 2).
        pub struct Dnp3Pcb = "dnp3_pcb", opt_in {
            /// Control code.
            control_code: u64 = "control_code",
            /// Number of times that the operation is executed.
            count8: u64 = "count8",
            /// Time that the output is on, in milliseconds.
            on_time: u64 = "on_time",
            /// Time that the output is off, in milliseconds.
            off_time: u64 = "off_time",
            /// Status code.
            status_code: u64 = "status_code",
        }

        /// Counter (group 20, variation 1).
        pub struct Dnp3Counter32wFlag = "dnp3_counter_32wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Counter (group 20, variation 2).
        pub struct Dnp3Counter16wFlag = "dnp3_counter_16wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Counter (group 20, variation 5).
        pub struct Dnp3Counter32woFlag = "dnp3_counter_32woFlag", opt_in {
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Counter (group 20, variation 6).
        pub struct Dnp3Counter16woFlag = "dnp3_counter_16woFlag", opt_in {
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Frozen counter (group 21, variation 1).
        pub struct Dnp3FrozenCounter32wFlag = "dnp3_frozen_counter_32wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Frozen counter (group 21, variation 2).
        pub struct Dnp3FrozenCounter16wFlag = "dnp3_frozen_counter_16wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Frozen counter (group 21, variation 5).
        pub struct Dnp3FrozenCounter32wFlagTime = "dnp3_frozen_counter_32wFlagTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The count.
            count_value: u64 = "count_value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen counter (group 21, variation 6).
        pub struct Dnp3FrozenCounter16wFlagTime = "dnp3_frozen_counter_16wFlagTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The count.
            count_value: u64 = "count_value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen counter (group 21, variation 9).
        pub struct Dnp3FrozenCounter32woFlag = "dnp3_frozen_counter_32woFlag", opt_in {
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Frozen counter (group 21, variation 10).
        pub struct Dnp3FrozenCounter16woFlag = "dnp3_frozen_counter_16woFlag", opt_in {
            /// The count.
            count_value: u64 = "count_value",
        }

        /// Analog input (group 30, variation 1).
        pub struct Dnp3AnalogInput32wFlag = "dnp3_analog_input_32wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input (group 30, variation 2).
        pub struct Dnp3AnalogInput16wFlag = "dnp3_analog_input_16wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input (group 30, variation 3).
        pub struct Dnp3AnalogInput32woFlag = "dnp3_analog_input_32woFlag", opt_in {
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input (group 30, variation 4).
        pub struct Dnp3AnalogInput16woFlag = "dnp3_analog_input_16woFlag", opt_in {
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input (group 30, variation 5).
        pub struct Dnp3AnalogInputSPwFlag = "dnp3_analog_input_SPwFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input (group 30, variation 6).
        pub struct Dnp3AnalogInputDPwFlag = "dnp3_analog_input_DPwFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// Low half of the value.
            value_low: u64 = "value_low",
            /// High half of the value.
            value_high: u64 = "value_high",
        }

        /// Frozen analog input (group 31, variation 1).
        pub struct Dnp3FrozenAnalogInput32wFlag = "dnp3_frozen_analog_input_32wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input (group 31, variation 2).
        pub struct Dnp3FrozenAnalogInput16wFlag = "dnp3_frozen_analog_input_16wFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input (group 31, variation 3).
        pub struct Dnp3FrozenAnalogInput32wTime = "dnp3_frozen_analog_input_32wTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen analog input (group 31, variation 4).
        pub struct Dnp3FrozenAnalogInput16wTime = "dnp3_frozen_analog_input_16wTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen analog input (group 31, variation 5).
        pub struct Dnp3FrozenAnalogInput32woFlag = "dnp3_frozen_analog_input_32woFlag", opt_in {
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input (group 31, variation 6).
        pub struct Dnp3FrozenAnalogInput16woFlag = "dnp3_frozen_analog_input_16woFlag", opt_in {
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input (group 31, variation 7).
        pub struct Dnp3FrozenAnalogInputSPwFlag = "dnp3_frozen_analog_input_SPwFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input (group 31, variation 8).
        pub struct Dnp3FrozenAnalogInputDPwFlag = "dnp3_frozen_analog_input_DPwFlag", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// Low half of the value.
            frozen_value_low: u64 = "frozen_value_low",
            /// High half of the value.
            frozen_value_high: u64 = "frozen_value_high",
        }

        /// Analog input event (group 32, variation 1).
        pub struct Dnp3AnalogInputEvent32woTime = "dnp3_analog_input_event_32woTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input event (group 32, variation 2).
        pub struct Dnp3AnalogInputEvent16woTime = "dnp3_analog_input_event_16woTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input event (group 32, variation 3).
        pub struct Dnp3AnalogInputEvent32wTime = "dnp3_analog_input_event_32wTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Analog input event (group 32, variation 4).
        pub struct Dnp3AnalogInputEvent16wTime = "dnp3_analog_input_event_16wTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Analog input event (group 32, variation 5).
        pub struct Dnp3AnalogInputEventSPwoTime = "dnp3_analog_input_event_SPwoTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
        }

        /// Analog input event (group 32, variation 6).
        pub struct Dnp3AnalogInputEventDPwoTime = "dnp3_analog_input_event_DPwoTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// Low half of the value.
            value_low: u64 = "value_low",
            /// High half of the value.
            value_high: u64 = "value_high",
        }

        /// Analog input event (group 32, variation 7).
        pub struct Dnp3AnalogInputEventSPwTime = "dnp3_analog_input_event_SPwTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            value: u64 = "value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Analog input event (group 32, variation 8).
        pub struct Dnp3AnalogInputEventDPwTime = "dnp3_analog_input_event_DPwTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// Low half of the value.
            value_low: u64 = "value_low",
            /// High half of the value.
            value_high: u64 = "value_high",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen analog input event (group 33, variation 1).
        pub struct Dnp3FrozenAnalogInputEvent32woTime = "dnp3_frozen_analog_input_event_32woTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input event (group 33, variation 2).
        pub struct Dnp3FrozenAnalogInputEvent16woTime = "dnp3_frozen_analog_input_event_16woTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input event (group 33, variation 3).
        pub struct Dnp3FrozenAnalogInputEvent32wTime = "dnp3_frozen_analog_input_event_32wTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen analog input event (group 33, variation 4).
        pub struct Dnp3FrozenAnalogInputEvent16wTime = "dnp3_frozen_analog_input_event_16wTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen analog input event (group 33, variation 5).
        pub struct Dnp3FrozenAnalogInputEventSPwoTime = "dnp3_frozen_analog_input_event_SPwoTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
        }

        /// Frozen analog input event (group 33, variation 6).
        pub struct Dnp3FrozenAnalogInputEventDPwoTime = "dnp3_frozen_analog_input_event_DPwoTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// Low half of the value.
            frozen_value_low: u64 = "frozen_value_low",
            /// High half of the value.
            frozen_value_high: u64 = "frozen_value_high",
        }

        /// Frozen analog input event (group 33, variation 7).
        pub struct Dnp3FrozenAnalogInputEventSPwTime = "dnp3_frozen_analog_input_event_SPwTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// The value; negative values are sign-extended to 64 bits.
            frozen_value: u64 = "frozen_value",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// Frozen analog input event (group 33, variation 8).
        pub struct Dnp3FrozenAnalogInputEventDPwTime = "dnp3_frozen_analog_input_event_DPwTime", opt_in {
            /// Flags of the point.
            flag: u64 = "flag",
            /// Low half of the value.
            frozen_value_low: u64 = "frozen_value_low",
            /// High half of the value.
            frozen_value_high: u64 = "frozen_value_high",
            /// Time, in milliseconds since the Unix epoch.
            time48: u64 = "time48",
        }

        /// A block of a file (group 70, variation 5).
        pub struct Dnp3FileTransport<'a> = "dnp3_file_transport", opt_in {
            /// Handle of the file.
            file_handle: u64 = "file_handle",
            /// Number of the block.
            block_num: u64 = "block_num",
            /// Data of the block.
            file_data: &'a [u8] = "file_data",
        }

        /// Data in an unknown format.
        pub struct Dnp3DebugByte<'a> = "dnp3_debug_byte", opt_in {
            /// The data.
            debug: &'a [u8] = "debug",
        }
    }
}
